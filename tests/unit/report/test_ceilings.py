import msgspec
import pytest

from pindiag import model as m
from pindiag.report import names
from pindiag.report.ceilings import ceilings

from . import example, live


def marked(made):
    return [row.label for row in made.rows if row.marked]


def found(report):
    return ceilings(report, names.primary_finding(report))


def with_rates(baseline, **rates):
    """Ceilings at these samples/s over a baseline of 1 000; ids with _ for -."""
    report = live.live()
    wanted = {name.replace("__", "-"): rate for name, rate in rates.items()}
    trials = [msgspec.structs.replace(_with(report, example.BASELINE, 1000.0), configuration=baseline)]
    trials += [_with(report, name, rate) for name, rate in wanted.items()]
    return msgspec.structs.replace(report, trials=trials, findings=[], verdict=example.empty().verdict)


def _with(report, name, rate):
    trial = next(one for one in report.trials if one.id == name)
    gain = m.Ratio(ratio=rate / 1000, ci95=(rate / 1050, rate / 950), rounds=6)
    return msgspec.structs.replace(trial, samples_per_second=m.Estimate(median=rate, ci95=None), versus_baseline=gain)


UNPINNED = example._configuration(example.BASELINE)
PINNED = example._configuration("nw4-pin1-nb1")
WITHOUT_WORKERS = example._configuration("nw0-pin0-nb0")
FREE = {"compute_only": 9000.0, "host_batch__pin0__nb0": 8000.0, "host_batch__pin1__nb1": 8000.0}


@pytest.mark.parametrize(
    ("baseline", "rates", "title", "limit"),
    [
        (
            PINNED,
            {"loader_only__nw4__pin0": 4000.0, "loader_only__nw4__pin1": 1050.0},
            "Only the pin thread",
            "pin_thread",
        ),
        (
            PINNED,
            {"loader_only__nw4__pin0": 1060.0, "loader_only__nw4__pin1": 1050.0},
            "Only the loader is",
            "loader",
        ),
        (
            UNPINNED,
            {"loader_only__nw4__pin0": 4000.0, "loader_only__nw4__pin1": 1050.0},
            "Each stage alone is faster than training: together",
            None,
        ),
        (
            UNPINNED,
            {"loader_only__nw4__pin0": 4000.0, "host_batch__pin0__nb0": 1100.0},
            "Only the copy from pageable",
            "copy",
        ),
        (
            PINNED,
            {"loader_only__nw4__pin0": 4000.0, "host_batch__pin0__nb0": 1100.0},
            "Each stage that was measured",
            None,
        ),
        (
            PINNED,
            {"loader_only__nw4__pin0": 1100.0, "host_batch__pin1__nb1": 1100.0},
            "The copy from pinned memory and",
            None,
        ),
        (PINNED, {"loader_only__nw16__pin0": 1100.0}, "Each stage that was measured", None),
        (
            PINNED,
            {"compute_only": 1030.0, "loader_only__nw4__pin0": 1100.0},
            "Neither loader nor copy is the limit",
            "step",
        ),
        (
            WITHOUT_WORKERS,
            {"loader_only__nw0__pin0": 2000.0},
            "Loading and training take turns: each alone is faster",
            None,
        ),
        (PINNED, {"compute_only": 1200.0, "host_batch__pin1__nb1": 1150.0}, "Only the step itself", "step"),
    ],
)
def test_the_title_names_what_is_as_slow_as_training(baseline, rates, title, limit):
    made = found(with_rates(baseline, **{**FREE, **rates}))
    assert made.title.startswith(title)
    assert {row.stage for row in made.rows if row.marked} == ({limit} if limit else set())


def test_the_gpu_is_named_by_the_share_that_training_reaches():
    made = found(with_rates(PINNED, compute_only=1030.0))
    assert made.title == "Neither loader nor copy is the limit: training reaches 97 % of the step alone"


def test_the_accent_is_on_what_the_verdict_speaks_of():
    assert marked(found(live.live())) == [f"Loader + pin thread, {count} workers" for count in (4, 8, 16)]
    report = live.live()
    finding = msgspec.structs.replace(report.findings[0], cause="pageable_copy")
    alone = msgspec.structs.replace(report, findings=[finding])
    assert marked(ceilings(alone, finding)) == ["Copy + step, pageable"]
    second = msgspec.structs.replace(report, findings=[finding, report.findings[0]])
    assert marked(ceilings(second, finding)) == [
        "Copy + step, pageable",
        *(f"Loader + pin thread, {count} workers" for count in (4, 8, 16)),
    ]


def test_rows_go_from_the_step_to_the_pin_thread():
    assert [row.label for row in found(live.live()).rows] == [
        "Step alone",
        "Copy + step, pinned, blocking",
        "Copy + step, pinned, non_blocking",
        "Copy + step, pageable",
        "Loader alone, no workers",
        "Loader alone, 4 workers",
        "Loader alone, 8 workers",
        "Loader alone, 16 workers",
        "Loader + pinning, no workers",
        "Loader + pin thread, 4 workers",
        "Loader + pin thread, 8 workers",
        "Loader + pin thread, 16 workers",
    ]


def test_a_phone_shows_the_best_of_each():
    assert [row.label for row in found(live.live()).few] == [
        "Step alone",
        "Copy + step, pinned, non_blocking",
        "Copy + step, pageable",
        "Loader alone, 8 workers",
        "Loader + pin thread, 4 workers",
    ]


def test_what_was_not_measured_keeps_its_row_and_its_reason():
    rows = {row.label: (row.rate, row.reason) for row in found(live.ceilings_alone()).rows}
    assert rows["Copy + step, pinned"] == (None, "the script changes its batches in place")
    assert rows["Loader + pin thread"] == (None, "no pin thread was asked for")
    assert rows["Step alone"][0] is not None


def test_without_an_accelerator_there_are_no_copies():
    facts = [m.Fact(name="accelerator_present", value=False, unit=None, trial=None, source="x")]
    report = with_rates(UNPINNED, compute_only=9000.0)
    rows = found(msgspec.structs.replace(report, facts=facts)).rows
    assert [row.label for row in rows] == ["Step alone", "Loader alone"]


def test_a_run_without_ablations_has_none():
    assert found(example.confirmed()) is None
    assert found(example.empty()) is None
