"""The timeline as the page words it."""

from typing import get_args

import msgspec
import pytest

from pindiag.model import GpuIdle, KernelTime, Span, Waits
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
    assert plain == "From records. Hollow bars are waits. Its blocks: nw4-pin0-nb0."
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


def with_gpu(**fields):
    report = example.confirmed()
    idle = GpuIdle(wait=0.5, synchronise=0.0, launch=0.02, operators=0.001, python=0.079)
    gpu = {"busy_share": 0.3, "idle_share": 0.6, "idle": idle, "longest_kernels": []} | fields
    trials = [
        msgspec.structs.replace(trial, gpu=msgspec.structs.replace(trial.gpu, **gpu)) if trial.gpu else trial
        for trial in report.trials
    ]
    return time.of_gpu(msgspec.structs.replace(report, trials=trials), drawn())


def test_what_the_main_thread_did_while_the_gpu_ran_nothing_is_said_largest_first():
    assert with_gpu() == (
        "In the profiler window the GPU ran kernels for 30 % of the time and nothing for 60 %, while the main thread "
        "was waiting for its loader (50 %), in Python (7.9 %), launching (2.0 %)."
    )
    kernel = KernelTime(name="gemm", ms=1.5, share=0.9, calls=2.0)
    assert with_gpu(longest_kernels=[kernel]).endswith("Most of the kernels' time is that of gemm (90 %).")


def test_without_a_window_that_tells_it_nothing_is_said_of_the_gpu():
    assert with_gpu(idle=None) is None
    assert time.of_gpu(example.confirmed(), example.NO_DRAWING) is None
