"""The arithmetic of overhead.py, and the taking out of hooks by its target, without a launch."""

from __future__ import annotations

import functools
import importlib.util
from types import ModuleType, SimpleNamespace

import overhead
import pytest
from overhead import Case, Measured, Timed


def measured(added_us, ratio=1.0, count=20) -> Measured:
    plain = Timed(100.0, 2_000.0)
    shifts = [0.1 * (number - count / 2) for number in range(count + 1)]
    probed = (Timed(100 + added_us + shift, 2_000 / ratio + shift) for shift in shifts)
    return Measured([(each, plain) for each in probed], [7.0, 9.0])


def test_a_row_tells_the_median_of_paired_differences_and_ratios() -> None:
    case = Case(2.0, 0, tensors=3)
    made = overhead.row(case, measured(9.0, ratio=0.99))
    assert made["name"] == "2 ms, 0 workers, tiny batches of 3 tensors"
    assert (made["step_ms"], made["tensors"], made["bound_us"], made["own_us_per_step"]) == (2.0, 3, 18.0, 8.0)
    assert (made["added_us_per_step"], made["added_us_ci95"], made["pairs"]) == (9.0, [8.5, 9.5], 21)
    assert made["probed_over_plain"] == 0.99
    low, high = made["probed_over_plain_ci95"]
    assert 0.989 < low < 0.99 < high < 0.991


def test_a_case_of_cpu_time_alone_has_no_throughput() -> None:
    made = overhead.row(Case(0.2, 0, throughput=False), measured(9.0))
    assert made["probed_over_plain"] is made["probed_over_plain_ci95"] is None


@pytest.mark.parametrize(("count", "ranks"), [(5, None), (6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (20, (6, 15))])
def test_the_interval_of_a_median_lies_between_the_tabled_ranks(count, ranks) -> None:
    values = list(range(count, 0, -1))
    assert overhead.median_ci95(values) == ranks


def test_a_case_is_settled_by_both_its_intervals() -> None:
    assert overhead.is_settled(Case(2.0, 0), measured(9.0))
    wide = [(Timed(100.0, 2_000.0 * (1 + 0.01 * number)), Timed(100.0, 2_000.0)) for number in range(20)]
    assert not overhead.is_settled(Case(2.0, 0), Measured(wide, []))
    assert overhead.is_settled(Case(2.0, 0, throughput=False), Measured(wide, []))
    assert not overhead.is_settled(Case(2.0, 0), Measured(wide[:3], []))


def test_the_cases_cover_what_is_claimed() -> None:
    switched = [case for case in overhead.FULL if not case.fresh]
    assert {case.work_ms for case in switched} == {0.2, 2.0, 20.0}
    assert {(case.workers, case.large, case.tensors > 2) for case in switched} == {
        (workers, large, many) for workers in (0, 2) for large in (False, True) for many in (False, True)
    }
    assert all(case.throughput for case in overhead.FULL if case.work_ms >= 2)
    assert any(case.fresh for case in overhead.FULL)
    assert {case.throughput for case in overhead.QUICK} == {True, False}
    assert len({case.name for case in overhead.FULL}) == len(overhead.FULL)


def test_the_target_is_told_whether_to_switch(tmp_path) -> None:
    words = Case(2.0, 2, tensors=2, large=True).arguments(tmp_path, seconds=8)
    told = dict(zip(words[::2], words[1::2], strict=True))
    assert (told["--floats"], told["--seconds"], told["--work-ms"]) == ("125000", "8", "2.0")
    assert "--seconds" not in Case(2.0, 2, fresh=True).arguments(tmp_path, seconds=8)


@pytest.fixture
def switched(monkeypatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("switched", overhead.TARGET)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hook(original, module="pindiag_probe.hooks"):
    """A wrapper as the probe's are."""
    names = {"functools": functools, "original": original, "__name__": module}
    exec("@functools.wraps(original)\ndef wrapper(*args): return ('probed', original(*args))", names)
    return names["wrapper"]


def test_hooks_are_taken_out_and_put_back(switched, monkeypatch) -> None:
    owner = SimpleNamespace(to=hook(abs), other=hook(abs, "library"), plain=abs, number=1)
    registered = {1: print}
    monkeypatch.setattr(switched, "HOOKED", (owner,))
    monkeypatch.setattr(switched, "OPTIMIZER_HOOKS", (registered,))
    hooks = switched.Hooks()
    hooks.switch(False)
    assert (owner.to(-1), owner.other(-1), registered) == (1, ("probed", 1), {})
    hooks.switch(True)
    assert (owner.to(-1), registered) == (("probed", 1), {1: print})


def test_without_a_probe_there_is_nothing_to_take_out(switched) -> None:
    assert switched.Hooks().wrapped == []


def test_the_works_cpu_time_is_not_the_loops(switched, monkeypatch) -> None:
    clock = SimpleNamespace(now=0.0, cpu=0.0)
    monkeypatch.setattr(switched.time, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(switched.time, "thread_time", lambda: clock.cpu)

    def takes(wall, cpu):
        clock.now, clock.cpu = clock.now + wall, clock.cpu + cpu

    class Worked:
        def run(self):
            takes(2.0, 1.5)
            return 1.5

    class Batches:
        def __next__(self):
            takes(0.25, 0.125)
            return []

    class Loader:
        def __iter__(self):
            return Batches()

    loop = switched.Loop(Loader(), "meta", Worked())
    assert loop.timed(4) == (125_000, 2_250_000)
