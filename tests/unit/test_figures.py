import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pindiag import figures

CASES = [
    (figures.significant, 3239.4, "3\u202f240"),
    (figures.significant, 25900, "25\u202f900"),
    (figures.significant, 999.6, "1\u202f000"),
    (figures.significant, 3.236, "3.24"),
    (figures.significant, 0.032361, "0.0324"),
    (figures.significant, 0, "0"),
    (figures.significant, math.inf, "∞"),
    (figures.significant, math.nan, "not a number"),
    (figures.rate, 481.2, "481 samples/s"),
    (figures.count, 38535168, "38\u202f535\u202f168"),
    (figures.ratio, 1.4299, "1.43 ×"),
    (figures.interval, (1.108, 1.851), "1.11–1.85"),
    (figures.milliseconds, 8.52, "8.5"),
    (figures.milliseconds, 0.03, "< 0.1"),
    (figures.milliseconds, 0.0, "0.0"),
    (figures.duration, 0.94, "0.94 s"),
    (figures.duration, 41.2, "41 s"),
    (figures.duration, 126, "2.1 min"),
    (figures.duration, 12240, "3.4 h"),
    (figures.byte_size, 38535168, "38.5 MB"),
    (figures.byte_size, 999.9, "1.00 kB"),
    (figures.byte_size, 17, "17.0 B"),
    (figures.share, 0.974, "97 %"),
    (figures.share, 0.0431, "4.3 %"),
    (figures.share, 0.0, "0 %"),
    (figures.floor, 1.034, "3.4 %"),
    (figures.p_value, 0.134, "0.13"),
    (figures.p_value, 0.0001, "< 0.01"),
    (figures.arguments, {"num_workers": 0, "pin_memory": True}, "num_workers=0, pin_memory=True"),
]


@pytest.mark.parametrize(("format_", "value", "text"), CASES)
def test_reads_as_the_report_says(format_, value, text):
    assert format_(value) == text


def test_a_ratio_without_an_interval_shows_none():
    assert figures.ratio_with_interval(1.2, None) == "1.20 ×"
    assert figures.ratio_with_interval(1.2, (1.1, 1.3)) == "1.20 × (1.10–1.30)"


@given(st.floats())
def test_any_float_becomes_text(value):
    for format_ in (figures.significant, figures.count, figures.ratio, figures.milliseconds, figures.duration):
        assert format_(value)
    for format_ in (figures.byte_size, figures.share, figures.floor, figures.p_value):
        assert format_(value)


def test_off_has_a_sign():
    assert [figures.off(ratio) for ratio in (1.2, 0.962, 1.0)] == ["+20 %", "−3.8 %", "+0 %"]
