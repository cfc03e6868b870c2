"""The timeline as the page words it."""

from typing import get_args

import msgspec
import pytest

from pindiag.model import Span, Waits
from pindiag.report.sections import time

from .. import example

LABELS = {example.confirmed().baseline: "4 workers, pin off"}


def drawn(**fields):
    return msgspec.structs.replace(example.drawing(example.confirmed()), **fields)


@pytest.mark.parametrize("waits", get_args(Waits))
def test_the_title_says_who_waits_for_whom(waits):
    title = time.timeline_chart(drawn(timeline_waits=waits), LABELS, "wait").title
    assert title.endswith(": typical steps of 4 workers, pin off")
    assert title.startswith("Everything waits" if waits == "all_for_gpu" else "The ")


def test_where_it_cannot_be_said_the_title_names_the_steps_alone():
    assert (
        time.timeline_chart(drawn(timeline_waits=None), LABELS, "wait").title == "Typical steps of 4 workers, pin off"
    )


def test_the_caption_says_where_bars_come_from_and_explains_what_is_drawn():
    plain = time.timeline_chart(drawn(timeline_source="From records."), LABELS, "wait").caption
    assert plain == "From records. Hollow bars are waits."
    odd = [
        Span(lane="main", name="python", start_ms=0, end_ms=1),
        Span(lane="worker 0", name="hand-off", start_ms=0, end_ms=1),
    ]
    caption = time.timeline_chart(drawn(timeline=odd), LABELS, "wait").caption
    assert "lower edge" in caption
    assert "not in PyTorch" in caption


def test_the_slowest_step_has_a_drawing_of_its_own_where_one_stands_out():
    assert time.slowest_chart(drawn(slowest=[], slowest_over_median=None), "wait") is None
    chart = time.slowest_chart(drawn(), "wait")
    assert "2.00 ×" in chart.title
    assert 'id="slowest-wide-t"' in chart.svg
