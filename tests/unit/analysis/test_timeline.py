"""Steps of a fake trial; microseconds of the trace are 5000 ahead of the rings' clock."""

import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from pindiag.analysis.main_thread import MainThread
from pindiag.analysis.timeline import nearest_the_median, stands_out, steps
from pindiag.model import WorkerBatch
from pindiag.store import read_trace

from .test_trace import Event

H200 = Path(__file__).parents[2] / "data" / "h200"
NEXT = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
AHEAD_US = 5000


def batch(started_us, **fields):
    times = {"fetch_ns": 300_000, "collate_ns": 100_000, "cpu_ns": 1, "samples": 4, **fields}
    return WorkerBatch(launch=1, pid=7, worker=0, started_ns=started_us * 1000, **times)


def trial(trace, batches=(), blocks=(), workers=1):
    return SimpleNamespace(
        trace=trace,
        main_thread=None if isinstance(trace, str) else MainThread.of(trace),
        blocks=list(blocks),
        window=SimpleNamespace(launch=1),
        run=SimpleNamespace(batches={1: list(batches)}),
        configuration=SimpleNamespace(num_workers=workers),
    )


def traced(lengths_us, anchored=True, wait=0.2):
    """Steps of these lengths; a part of each waits for the loader."""
    events, at = [], AHEAD_US
    for length in lengths_us:
        events += [
            Event("user_annotation", NEXT, at, length * wait),
            Event("cpu_op", "aten::mm", at + length / 2, length / 4),
        ]
        at += length
    if anchored:
        events.append(Event("user_annotation", "pindiag monotonic_ns=0", AHEAD_US, 1))
    return events


def names(spans, lane):
    return [(span.name, round(span.start_ms, 3), round(span.end_ms, 3)) for span in spans if span.lane == lane]


def block(step_ms, wait_ms):
    times = {"started_ns": 0, "ended_ns": 10**9, "gap_s": 0.0, "step_ms": step_ms, "step_wait_ms": wait_ms}
    return SimpleNamespace(launch=1, block=1, **times)


def test_typical_steps_are_nearest_the_median_together():
    assert nearest_the_median([9, 1, 5, 5.1, 4.9, 20], 3) == 2
    assert nearest_the_median([3, 1], 3) == 0


@pytest.mark.parametrize(("lengths", "slowest"), [([4, 4, 9, 4], 2), ([4, 4.5, 4.9, 4], None), ([4], None)])
def test_a_slowest_step_is_shown_where_it_stands_out(lengths, slowest):
    assert stands_out(lengths) == slowest


def test_typical_steps_and_the_slowest_of_a_window():
    shown = steps(trial(traced([9000, 1000, 1000, 1000, 1000, 500]), workers=0))
    assert shown.marks_ms == [0, 1, 2, 3]
    assert names(shown.typical, "main")[0] == ("wait", 0, 0.2)
    assert shown.slowest_over_median == 9
    assert names(shown.slowest, "main")[0] == ("wait", 0, 1.8)
    assert {span.name for span in shown.typical} == {"wait", "operators", "python"}


def test_stages_of_the_main_thread_fill_the_steps():
    shown = steps(trial(traced([1000] * 5)))
    assert sum(span.end_ms - span.start_ms for span in shown.typical if span.lane == "main") == pytest.approx(3)


def test_workers_are_aligned_by_the_anchor():
    seen = batch(100, idle_ns=50_000, handed_ns=650_000, hand_off_ns=80_000, blocked_ns=20_000)
    shown = steps(trial(traced([1000] * 5), [seen]))
    assert names(shown.typical, "worker 0") == [
        ("idle", 0.05, 0.1),
        ("fetch", 0.1, 0.4),
        ("collate", 0.4, 0.5),
        ("hand-off", 0.55, 0.63),
        ("blocked", 0.63, 0.65),
    ]
    assert "aligned" in shown.source


def test_without_an_anchor_workers_are_not_drawn():
    shown = steps(trial(traced([1000] * 5, anchored=False), [batch(100)]))
    assert {span.lane for span in shown.typical} == {"main"}
    assert "aligned" not in shown.source


def test_a_batch_begun_before_and_a_wait_that_ends_after_are_seen():
    before, after = batch(-200, fetch_ns=400_000), batch(3500, idle_ns=1_000_000)
    shown = steps(trial(traced([1000] * 5), [before, after]))
    assert ("fetch", 0, 0.2) in names(shown.typical, "worker 0")
    assert ("idle", 2.5, 3) in names(shown.typical, "worker 0")


def test_a_kernel_too_short_to_be_seen_is_drawn_all_the_same():
    kernel = Event("kernel", "k", AHEAD_US + 500, 0.1, tid=7)
    shown = steps(trial([*traced([1000] * 5), kernel]))
    assert names(shown.typical, "kernels") == [("kernels", 0.5, 0.502)]


def test_kernels_a_launch_apart_are_drawn_as_one_bar_but_leave_the_gpu_idle():
    """Steps of 1 ms that launch all the time: 1 us of each 2."""
    events = traced([1000] * 6, wait=0.1)
    work = [Event("cpu_op", "aten::mm", AHEAD_US + 1000 * n + 200, 800) for n in range(6)]
    kernels = [Event("kernel", "k", AHEAD_US + 2 * n, 1, tid=7) for n in range(3000)]
    shown = steps(trial([*events, *work, *kernels]))
    assert len(names(shown.typical, "kernels")) == 1
    assert shown.waits == "gpu_for_main"


def test_records_serve_where_there_is_no_window():
    shown = steps(trial("no profiler window ran", [batch(100)], [block([1, 1, 1, 4], [0.2, 0.2, 0.2, 9])]))
    assert names(shown.typical, "main") == [
        ("wait", 0, 0.2),
        ("wait", 1, 1.2),
        ("wait", 2, 2.2),
        ("step", 0.2, 1),
        ("step", 1.2, 2),
        ("step", 2.2, 3),
    ]
    assert ("fetch", 0.1, 0.4) in names(shown.typical, "worker 0")
    assert (names(shown.slowest, "main"), shown.slowest_over_median) == ([("wait", 0, 4)], 4)
    assert "no profiler window" in shown.source


def test_no_step_is_no_timeline():
    assert steps(trial("no profiler window ran")) is None
    assert steps(trial([], blocks=[block([], [])])) is None


@pytest.mark.parametrize(
    ("name", "waits"), [("trace_pin0_nb0", "main_for_copies"), ("trace_pin1_nb1", "main_for_pin_thread")]
)
def test_h200_steps_say_who_waits_for_whom(name, waits):
    shown = steps(trial(read_trace(H200 / f"{name}.json.gz"), workers=4))
    assert shown.waits == waits
    assert {"main", "copies", "kernels"} <= {span.lane for span in shown.typical}
    assert ("pin thread" in {span.lane for span in shown.typical}) == ("pin1" in name)


@pytest.mark.parametrize(("run", "waits"), [("healthy_compute", "all_for_gpu"), ("tabular_rows", "gpu_for_main")])
def test_h200_device_bound_and_launch_bound_are_told_apart(run, waits, tmp_path):
    with tarfile.open(H200 / f"{run}.tar.xz") as archive:
        content = archive.extractfile(f"{run}/traces/baseline-1.json.gz").read()
    path = tmp_path / "trace.json.gz"
    path.write_bytes(content)
    assert steps(trial(read_trace(path), workers=4)).waits == waits
