import dataclasses
import re

import msgspec
import pytest

from pindiag import model as m
from pindiag.report import names
from pindiag.report.markdown import render_markdown
from pindiag.report.rows import batch_sizes, configurations
from pindiag.report.sections import sweep
from pindiag.report.view import view

from .. import example
from ..example import BASELINE, BEST


def shown(report, spec=example.SPEC):
    return view(report, example.NO_DRAWING, spec)


def changed(report, trial, **fields):
    trials = [msgspec.structs.replace(one, **fields) if one.id == trial else one for one in report.trials]
    return msgspec.structs.replace(report, trials=trials)


def cell(table, trial, column):
    line = next(line for line in table.lines if line.row.trial.id == trial)
    return line.cells[table.columns.index(column)].text


def holding(pss, shm=0, pinned=None):
    return m.MemoryBytes(pss=pss, pinned=pinned, shm=shm)


# ------------------------------------------------------------------------------------------------- predictions


def test_a_prediction_stands_beside_its_measurement():
    table = shown(example.sizes()).sweep_table
    assert table.columns[4:6] == ["predicted at most", "off by"]
    assert (cell(table, BEST, "predicted at most"), cell(table, BEST, "off by")) == (
        "5\u202f000",
        "−3.8 %",
    )
    assert cell(table, "nw4-pin1-nb1", "off by").startswith("+")
    assert cell(table, "nw8-pin0-nb0", "predicted at most") == "–"


def test_without_predictions_there_is_no_column():
    assert "predicted at most" not in shown(example.verified()).sweep_table.columns


@pytest.mark.parametrize(
    ("reason", "most", "said"),
    [
        (
            "predicted at most 900 samples/s, because its workers fetch no more",
            900.0,
            "not run: predicted at most 900 samples/s, because its workers fetch no more",
        ),
        (
            "not run: predicted at most 900 samples/s, because 2 workers are slower than 1",
            900.0,
            "not run: predicted at most 900 samples/s, because 2 workers",
        ),
        ("the budget left no time for it", 900.0, "not run: the budget left no time for it; predicted at most 900"),
        ("the budget left no time for it", None, "not run: the budget left no time for it"),
        (None, 900.0, "not run: predicted at most 900 samples/s"),
    ],
)
def test_what_was_not_run_says_why_and_what_was_predicted(reason, most, said):
    report = changed(
        example.verified(),
        "nw16-pin1-nb1-pf4",
        status="predicted" if most else "skipped",
        reason=reason,
        predicted_samples_per_second=most,
    )
    table = shown(report).sweep_table
    assert "predicted at most" not in table.columns
    line = next(line for line in table.lines if line.failed)
    assert line.failed.startswith(said)
    assert line.failed.count("predicted") == (1 if most else 0)


def test_only_what_was_not_run_has_a_hollow_dot():
    rows = configurations(example.sizes(), names.labels(example.sizes().trials))
    assert not any(row.at_most for row in rows)


# ---------------------------------------------------------------------------------------------------- frontier


def test_the_title_says_what_the_recommendation_costs():
    report = example.verified()
    for name, pss in ((BEST, 2_000_000_000), (BASELINE, 3_000_000_000)):
        report = changed(report, name, memory_bytes=holding(pss))
    title = shown(report).frontier_chart.title
    assert (
        title == "“no workers, pin, non_blocking” is the fastest, with 1.00 GB less memory than the script as written"
    )


def test_the_title_says_what_the_cheapest_gives_away():
    report = changed(example.verified(), BEST, memory_bytes=holding(2_000_000_000))
    fast = m.Estimate(median=4_900.0, ci95=None)
    report = changed(report, "nw8-pin1-nb1", memory_bytes=holding(4_500_000_000), samples_per_second=fast)
    title = shown(report).frontier_chart.title
    assert title.startswith("“no workers, pin, non_blocking” reaches 98 % of the fastest, “8 workers, pin, non_block")
    assert title.endswith("with 2.50 GB less memory than it")


def test_keeping_what_is_written_names_what_is_as_fast_in_less_memory():
    report = example.no_difference()
    slower = m.Ratio(ratio=0.99, ci95=(0.97, 1.01), rounds=6, p_corrected=0.9)
    for one in report.trials:
        if one.id != BASELINE and one.versus_baseline:
            report = changed(report, one.id, versus_baseline=slower)
    report = changed(report, BASELINE, memory_bytes=holding(3_000_000_000))
    assert shown(report).frontier_chart.title == "The script as written needs 3.00 GB"
    as_fast = m.Ratio(ratio=1.0, ci95=(0.99, 1.01), rounds=6, p_corrected=0.9)
    report = changed(report, "nw0-pin0-nb0", memory_bytes=holding(1_000_000_000), versus_baseline=as_fast)
    assert shown(report).frontier_chart.title == (
        "“no workers, pin off” is as fast as the script as written, with 2.00 GB less memory"
    )


def test_shared_and_pinned_memory_are_counted_once():
    assert holding(1000, shm=300, pinned=200).total == 1000
    assert holding(1000, shm=300, pinned=200).pinned_and_shared == 300
    assert holding(1000, shm=100, pinned=200).total == 1100
    assert holding(None).total is None


def test_the_table_has_what_the_line_passes_through():
    table = shown(example.verified()).frontier_table
    used = [line.row.trial.memory_bytes.total for line in table.lines]
    assert used == sorted(used)
    assert {line.row.trial.id for line in table.lines} == {BEST, BASELINE, "nw0-pin1-nb0", "nw0-pin0-nb0"}
    assert table.columns[0] == "memory"
    assert table.columns[-1] == "epoch"


# ------------------------------------------------------------------------------------------------- batch sizes


def test_batch_sizes_stand_apart_from_the_sweep():
    report = example.sizes()
    made = shown(report)
    assert not any("bs" in row.trial.id for row in made.rows)
    assert [row.trial.configuration.batch_size for row in batch_sizes(report)] == [32, 64, 128, 256]
    assert (
        made.sizes.title == "A batch size of 256 brings 2.10 × (1.99–2.21) the samples a second, and changes training"
    )
    assert [line.row.label for line in made.sizes.table.lines][1] == "4 workers, pin off, batch 64 (as written)"
    assert cell(made.sizes.table, f"{BASELINE}-bs128", "memory") == "2.64 GB"
    assert "GPU memory" not in made.sizes.table.columns
    assert not any("batch" in label for trial, label in made.labels.items() if "-bs" not in trial)


def test_the_script_as_written_has_the_rate_of_the_same_rounds():
    report = example.sizes()
    beside = [block for block in report.blocks if block.trial == BASELINE and block.round == 2]
    sized = [msgspec.structs.replace(beside[0], id=900, trial=f"{BASELINE}-bs32")]
    report = msgspec.structs.replace(report, blocks=[*report.blocks, *sized])
    own = next(row for row in batch_sizes(report) if row.role == "baseline")
    assert own.trial.samples_per_second.median == pytest.approx(beside[0].samples / beside[0].seconds)


def test_gpu_memory_is_shown_where_it_is_known():
    report = example.sizes()
    sampler = next(one.sampler for one in report.trials if one.sampler)
    known = msgspec.structs.replace(sampler, gpu_memory_bytes=40_000_000_000)
    table = shown(changed(report, f"{BASELINE}-bs256", sampler=known)).sizes.table
    assert cell(table, f"{BASELINE}-bs256", "GPU memory") == "40.0 GB"


def test_no_gain_of_a_batch_size_is_claimed_without_an_interval_above_1():
    report = example.sizes()
    for size in (128, 256):
        open_ended = m.Ratio(ratio=2.0, ci95=None, rounds=1)
        report = changed(report, f"{BASELINE}-bs{size}", versus_baseline=open_ended)
    assert shown(report).sizes.title == "No other batch size is shown to bring more samples a second"


@pytest.mark.parametrize(
    ("asked", "own", "why"),
    [
        ([], None, "the script's own batch size is not known, so name some: --sweep-batch-size 32,64"),
        ([64], 64, "none but the script's own was named"),
        ([], 64, "the run ended, or its budget was spent, before their turn"),
        ([32], 64, "the run ended, or its budget was spent, before their turn"),
    ],
)
def test_why_no_other_batch_size_was_tried(asked, own, why):
    report = example.verified()
    for one in report.trials:
        configuration = msgspec.structs.replace(one.configuration, batch_size=own)
        report = changed(report, one.id, configuration=configuration)
    sizes = shown(report, msgspec.structs.replace(example.SPEC, batch_sizes=asked)).sizes
    assert (sizes.table, sizes.why_none) == (None, why)


def test_nothing_is_said_of_batch_sizes_that_were_not_asked_for():
    assert shown(example.verified()).sizes is None


def test_the_summary_says_what_batch_sizes_brought():
    text = render_markdown(example.sizes(), example.SPEC)
    assert "never recommended: batch 32 0.80 × (0.76–0.84); batch 128 1.50 ×" in text
    assert "batch 256" not in text.partition("Other batch sizes")[0]


def test_of_what_was_not_run_the_chart_has_only_what_promised_most():
    report = example.confirmed()
    rows = configurations(report, names.labels(report.trials))
    idlest = dataclasses.replace(rows[-1], trial=msgspec.structs.replace(rows[-1].trial, status="skipped"))
    idle = [dataclasses.replace(idlest, at_most=1 + n / 100, label=f"idle {n}", role="other") for n in range(12)]
    made = sweep.chart([*rows[:2], *idle], report)
    shown = set(re.findall(r">(idle \d+)<", made.svg))
    assert shown == {f"idle {n}" for n in range(6, 12)}
    assert "6 more were not run and promised no more; the table has them." in made.caption


def test_many_that_were_not_run_stand_beside_the_table_with_their_reasons():
    report = example.confirmed()
    chosen = {report.baseline, report.recommendation.trial}
    why = "predicted at most 7736 samples/s, because the pin thread takes that long for a batch"
    left_out = [one.id for one in report.trials if one.id not in chosen and one.kind == "configuration"]
    assert len(left_out) > sweep.MOST_NOT_RUN
    for trial in left_out:
        report = changed(report, trial, status="skipped", reason=why, samples_per_second=None, versus_baseline=None)
    page = shown(report)
    assert {line.row.trial.id for line in page.sweep_table.lines} == chosen
    assert {line.row.trial.id for line in page.not_run} == set(left_out)
    assert page.not_run[0].failed == f"not run: {why}".replace("7736", "7\u202f740")
    report = changed(report, left_out[0], status="failed", reason="out of memory")
    assert left_out[0] in {line.row.trial.id for line in shown(report).sweep_table.lines}
