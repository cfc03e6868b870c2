import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from pindiag import figures
from pindiag.report.text import LONGEST_BYTES, Linker, clean, environment, quantity

from . import example, live

LINKS = Linker(example.confirmed())


@given(st.text(max_size=300))
def test_nothing_invisible_survives(text):
    shown = clean(text)
    assert not [one for one in shown if ord(one) < 0x20 and one not in "\n\t"]
    assert not [one for one in shown if 0x202A <= ord(one) <= 0x202E or 0x2066 <= ord(one) <= 0x2069]


def test_lone_surrogates_can_be_written():
    assert clean("a\udcffb").encode() == b"a?b"


def test_long_text_is_cut_in_the_middle():
    shown = clean("a" * 3000 + "é" * 3000)
    assert "cut, 4904 bytes" in shown
    assert len(shown.encode()) < LONGEST_BYTES + 64
    assert shown.endswith("é")


def test_markup_and_numbers_pass():
    assert clean(Markup("<b>")) == "<b>"
    assert clean(3) == 3


@pytest.mark.parametrize(
    ("value", "unit", "wanted"),
    [
        (True, None, "yes"),
        (None, "ms", ""),
        ("fork", None, "fork"),
        (0.97, "1", "97 %"),
        (38_535_168, "B", "38.5 MB"),
        (0.0, "B/s", "0 B/s"),
        (3240.0, "samples/s", "3\u202f240 samples/s"),
        (1.434, "×", "1.43 ×"),
        (8.33, "ms", "8.3 ms"),
        (4.2, "GB/s", "4.20 GB/s"),
        (16, None, "16"),
    ],
)
def test_quantities(value, unit, wanted):
    assert quantity(value, unit) == wanted


def test_figures_and_trials_become_links():
    shown = LINKS.sentence("From 3\u202f240 samples/s: 1.43 × faster with `num_workers=0` (nw8-pin0-nb0 <b>).")
    assert '<a class="rec" href="#rec-nw4-pin0-nb0"' in shown
    assert '<strong><a class="rec" href="#rec-nw0-pin1-nb1"' in shown
    assert '<code class="nowrap">num_workers=0</code>' in shown
    assert 'href="#rec-nw8-pin0-nb0"' in shown
    assert "&lt;b&gt;" in shown


def test_unknown_figures_stay_text():
    assert LINKS.sentence("9.87 × and 12\u202f345 samples/s") == "9.87 × and 12\u202f345 samples/s"


def test_sources_lead_to_their_blocks():
    assert LINKS.source("blocks 1, 2, 999 of nw4-pin0-nb0") == (
        'blocks <a class="rec" href="#block-1">1</a>, <a class="rec" href="#block-2">2</a>, 999 of '
        + str(LINKS.source("nw4-pin0-nb0"))
    )


def test_environment_in_words():
    assert environment({"usable_cpus": 16, "memory_bytes": 128_000_000_000, "gpu": None}) == [
        ("usable CPUs", "16", "usable_cpus"),
        ("memory", "128 GB", "memory_bytes"),
        ("GPU", None, "gpu"),
    ]
    assert environment({"shm_bytes": 64_000_000, "cpu_quota": 1.5, "throttled_share": 0.1, "pcie_link": "x"}) == [
        ("/dev/shm", "64.0 MB", "shm_bytes"),
        ("CPU quota", "1.50 CPUs", "cpu_quota"),
        ("throttled", "10 %", "throttled_share"),
        ("PCIe link", "x", "pcie_link"),
    ]


def test_what_perfect_copies_would_bring_leads_to_the_step_alone():
    report = live.live()
    gains = {trial.id: trial.versus_baseline.ratio for trial in report.trials if trial.versus_baseline}
    ratio = figures.ratio(gains["compute_only"] / gains["host_batch-pin0-nb0"])
    assert 'href="#rec-compute_only" title="blocks' in Linker(report).sentence(f"copies: {ratio} faster than that.")


def test_an_interval_stays_on_its_line():
    assert '(95 % interval <span class="nowrap">1.11–1.85</span>)' in LINKS.sentence("x (95 % interval 1.11–1.85)")


def test_sentences_name_trials_by_their_words():
    sentence = LINKS.sentence("1.84 × as fast as nw4-pin1-nb1, not nw4-pin1-nb1-pf8.")
    assert ">“4 workers, pin, non_blocking”</a>, not nw4-pin1-nb1-pf8." in sentence
    assert LINKS.named("nw0-pin1-nb1 over nw4-pin1-nb1") == (
        "“no workers, pin, non_blocking” over “4 workers, pin, non_blocking”"
    )
