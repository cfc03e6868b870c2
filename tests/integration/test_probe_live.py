"""Live launches: many treatments in one process, behind one loop that is not to notice."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections import Counter
from itertools import chain, groupby, islice

import msgspec
import pytest
from torch.utils.data import dataloader

from pindiag.model import (
    Block,
    DatasetChanged,
    LoaderChosen,
    LoaderIterated,
    TargetEnded,
    TargetFailed,
    TreatmentApplied,
    Window,
)

from .probe_harness import ABLATIONS, FEW, TARGETS, assert_all_counted, few, key, launch, live, order, then, under

pytestmark = pytest.mark.integration

INDICES = TARGETS / "indices.py"
LIVE = TARGETS / "live.py"
PINNED = TARGETS / "pinned.py"
PLAIN = TARGETS / "plain.py"
STYLES = TARGETS / "styles.py"

MIXED = [
    under(2, "nw2", num_workers=2),
    under(3, "nw0", num_workers=0),
    under(4, "nw1-pf4", num_workers=1, prefetch_factor=4),
    under(5, "nw1-pf4", num_workers=1, prefetch_factor=4),
    under(6, "as-written"),
]

TOLD = [("plain", 2), ("distributed_by_count", 0), ("generator", 0)]
"""Launches that are told which loader it is; the others find it."""

WORKERS_MATTER = ("eager", "persistent")
"""Styles whose sampler's seeds depend on whether torch makes a new iterator with workers for each epoch."""


STYLE_AND_WORKERS = [
    ("plain", 0),
    ("plain", 2),
    ("distributed", 1),
    ("distributed_by_count", 0),
    ("batch_sampler", 2),
    ("generator", 0),
    ("eager", 2),
    ("single", 1),
    ("persistent", 2),
    ("holed", 2),
]
EPOCHS = 30


@pytest.fixture(scope="module")
def without_us(tmp_path_factory):
    """What each style writes in some epochs without us."""
    folder = tmp_path_factory.mktemp("without")
    workers = {style: number if style in WORKERS_MATTER else 0 for style, number in STYLE_AND_WORKERS}
    words = [(style, str(number), str(EPOCHS), folder / style) for style, number in workers.items()]
    subprocess.run([sys.executable, INDICES, *chain.from_iterable(words)], check=True)
    return {style: (folder / style).read_text().splitlines() for style in workers}


def assert_begins_like(got, without):
    """As far as it came, it is what a run without us wrote, whose last line tells of its random numbers."""
    assert 0 < len(got) < len(without)
    assert got == without[: len(got)]


# ------------------------------------------------------------------------------------------------ the script's batches


@pytest.mark.parametrize(("style", "workers"), STYLE_AND_WORKERS)
def test_the_script_gets_the_batches_of_its_sampler(tmp_path, without_us, style, workers):
    path = tmp_path / "with.txt"
    told = (style, workers) in TOLD
    loader = key(INDICES, "loader = DataLoader(") if told else None
    arguments = (style, str(workers), "100000", str(path))
    result = live(tmp_path, INDICES, *arguments, first=order(**FEW), blocks=few(MIXED), loader=loader)
    assert_all_counted(result, MIXED)
    assert result.output == ""
    got = path.read_text().splitlines()
    batches = 40 if style == "single" else 10
    assert len(got) > 2 * batches, "two epochs and more"
    assert_begins_like(got, without_us[style])
    assert [record.trial for record in result.all(LoaderIterated)] == [None, *(block.trial for block in MIXED)]


def test_a_later_live_launch_begins_as_written_and_then_runs_what_it_is_told(tmp_path, without_us):
    path = tmp_path / "with.txt"
    first, *others = few(MIXED)
    loader = key(INDICES, "loader = DataLoader(")
    arguments = ("plain", "1", "100000", str(path))
    result = live(tmp_path, INDICES, *arguments, blocks=others, first=first, loader=loader)
    assert [block.trial for block in result.all(Block)] == [block.trial for block in MIXED]
    assert result.one(LoaderChosen).configuration.num_workers == 1
    assert [record.trial for record in result.all(LoaderIterated)] == [None, *(block.trial for block in MIXED)]
    got = path.read_text().splitlines()
    assert_begins_like(got, without_us["plain"])


def test_batches_out_of_order_are_all_given_and_none_twice(tmp_path):
    path = tmp_path / "with.txt"
    result = live(tmp_path, INDICES, "out_of_order", "2", "100000", str(path), blocks=MIXED)
    assert_all_counted(result, MIXED)
    rows = [int(row) for line in path.read_text().splitlines() for row in line.split()]
    times = Counter(rows)
    epochs = len(rows) / 40
    assert all(abs(times[row] - epochs) < 2 for row in range(40)), times


@pytest.mark.parametrize("style", ["plain", "distributed"])
def test_natural_epochs_leave_the_script_its_batches_its_random_numbers_and_its_end(tmp_path, without_us, style):
    path = tmp_path / "with.txt"
    unending = msgspec.structs.replace(MIXED[0], block=9, steps=100_000)
    result = live(
        tmp_path,
        INDICES,
        style,
        "1",
        str(EPOCHS),
        str(path),
        natural_epochs=True,
        first=order(**FEW),
        blocks=[*few(MIXED[:4]), unending],
    )
    assert path.read_text().splitlines() == without_us[style]
    assert result.one(TargetEnded).how == "finished"
    assert [block.status for block in result.all(Block)] == ["counted"] * 6
    assert "ended before" in result.all(Block)[-1].reason


# ----------------------------------------------------------------------------------------------------- what is shown


def test_warnings_are_shown_as_often_as_without_us(tmp_path):
    script = tmp_path / "warns.py"
    script.write_text(PLAIN.read_text().replace("optimizer.step()", "optimizer.step(); warnings.warn('my own')"))
    script.write_text(script.read_text().replace("import sys", "import sys, warnings"))
    result = live(tmp_path, script, "num_workers=1, pin_memory=True", blocks=MIXED)
    assert_all_counted(result, MIXED)
    of_torch = "'pin_memory' argument"
    warns = of_torch in inspect.getsource(dataloader)  # torch 2.6 says nothing
    assert [result.output.count(text) for text in (of_torch, "UserWarning: my own")] == [int(warns), 1]


def test_non_blocking_belongs_to_the_block(tmp_path):
    blocks = [
        under(2, "nb1", non_blocking=True),
        under(3, "nb0", non_blocking=False),
        under(4, "as-written"),
    ]
    result = live(tmp_path, TARGETS / "planted.py", "transfers", blocks=blocks)
    shares = [sorted(site.non_blocking_calls / site.calls for site in block.transfers) for block in result.all(Block)]
    assert shares == [[0, 1], [1, 1], [0, 0], [0, 1]]
    assert {record.trial: record.applied for record in result.all(TreatmentApplied)} == {
        "nb1": {"non_blocking": True},
        "nb0": {"non_blocking": False},
        "as-written": {},
    }


def test_calls_that_wait_are_answered_at_once_in_their_block_only(tmp_path):
    blocks = [under(2, "as-written+lazy_sync", "tweak", lazy_sync=True), under(3, "as-written")]
    result = live(tmp_path, LIVE, "waiting", blocks=blocks)
    assert_all_counted(result, blocks)
    before, lazy, after = (block.syncs[0] for block in result.all(Block))
    assert (before.lazy_calls, after.lazy_calls) == (0, 0)
    assert lazy.lazy_calls == lazy.calls == result.all(Block)[1].steps
    waited_for = [int(line) for line in result.output.splitlines()]
    stale = next(group for group in ([*found] for _, found in groupby(waited_for)) if len(group) > 1)
    assert len(stale) > lazy.calls
    assert waited_for[-1] == len(waited_for) - 1


def test_threads_and_cpus_of_workers_belong_to_the_block(tmp_path):
    blocks = [
        under(2, "as-written+worker_threads", "tweak", worker_threads=1),
        under(3, "as-written+worker_affinity", "tweak", worker_affinity=True),
        under(4, "as-written+fewer_intraop_threads", "tweak", fewer_intraop_threads=1),
        under(5, "as-written"),
    ]
    result = live(tmp_path, TARGETS / "bound.py", environment={"OMP_NUM_THREADS": "2"}, blocks=blocks)
    assert_all_counted(result, blocks)
    given = len(os.sched_getaffinity(0))
    steps = [tuple(map(int, line.split())) for line in result.output.splitlines()]
    assert [seen for seen, _ in groupby(steps)] == [(1, 2, 2), (1, 1, 2), (given, 2, 2), (1, 2, 1), (1, 2, 2)]


# --------------------------------------------------------------------------------------- what treatments leave behind


def test_nothing_of_a_treatment_is_left_when_the_next_begins(tmp_path):
    blocks = [
        under(2, "nw3-pin1", num_workers=3),
        under(3, "nw0", num_workers=0),
        under(4, "nw2-pin0", num_workers=2, pin_memory=False),
        under(5, "compute_only", "ablation"),
        under(6, "nw0", num_workers=0),
    ]
    result = live(tmp_path, LIVE, "left_over", blocks=blocks)
    assert_all_counted(result, blocks)
    seen = [tuple(json.loads(line)) for line in result.output.splitlines()]
    found = [(workers, pins) for (workers, pins, _), _ in groupby(seen, key=lambda step: step[:2] + (0,))]
    assert found == [(1, 1), (3, 1), (0, 0), (2, 0), (1, 1), (0, 0)]
    without_workers = [descriptors for workers, _, descriptors in seen if workers == 0]
    assert max(without_workers) - min(without_workers) <= 4


def test_random_numbers_are_those_of_a_run_without_us_and_the_dataset_is_as_it_was(tmp_path):
    result = live(tmp_path, LIVE, "random_numbers", blocks=MIXED)
    got = result.output.splitlines()
    command = [sys.executable, LIVE, "random_numbers"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        expected = [line.rstrip() for line in islice(child.stdout, len(got))]
        child.kill()
    assert len(got) > 100
    assert got == expected
    assert result.all(DatasetChanged) == []


def test_a_dataset_that_changes_while_it_serves_in_the_main_process_is_told(tmp_path):
    blocks = [under(2, "nw2", num_workers=2), under(3, "nw0", num_workers=0)]
    result = live(tmp_path, LIVE, "caching", blocks=blocks)
    assert_all_counted(result, blocks)
    changed = result.all(DatasetChanged)
    assert [(record.block, record.trial) for record in changed] == [(1, "as-written"), (3, "nw0")]
    assert all(record.what.startswith("read: ") for record in changed)
    told = [record["type"] for record in result.piped]
    assert told[told.index("dataset_changed") + 1] == "block"


ONE_OR_TWO = {"OMP_NUM_THREADS": "2"}
PINNING = {"pin1": {}, "pin0": {"pin_memory": False}}


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """The main thread's number in fresh processes with and without a pin thread, as scouts read it."""
    numbers = {}
    for trial, changes in PINNING.items():
        made = under(1, trial, **changes).treatment
        scout = launch(
            tmp_path_factory.mktemp(trial),
            PINNED,
            "1",
            environment=ONE_OR_TWO,
            loader=key(PINNED, "in DataLoader("),
            treatment=made,
            blocks=[],
        )
        numbers[trial] = scout.one(LoaderChosen).intraop_threads
    return numbers


@pytest.mark.parametrize("pinned_first", [False, True])
def test_the_main_threads_number_is_that_of_a_fresh_process(tmp_path, fresh, pinned_first):
    assert fresh == {"pin1": 1, "pin0": 2}
    trials = ["pin1", "pin0", "pin1"] if pinned_first else ["pin0", "pin1", "pin0"]
    blocks = [
        msgspec.structs.replace(under(number, trial, **PINNING[trial]), intraop_threads=fresh[trial])
        for number, trial in enumerate(trials, 2)
    ]
    mended = under(5, "pin1+intraop_threads", "tweak", intraop_threads=2)
    blocks.append(msgspec.structs.replace(mended, intraop_threads=1))
    result = live(tmp_path, PINNED, "1", environment=ONE_OR_TWO, blocks=blocks)
    assert_all_counted(result, blocks)
    assert [block.intraop_threads for block in result.all(Block)] == [1, *(fresh[trial] for trial in trials), 2]
    applied = {record.trial: record.applied for record in result.all(TreatmentApplied)}
    assert applied["pin1+intraop_threads"] == {"intraop_threads": 2}


def test_workers_that_sleep_are_killed_and_nothing_is_raised(tmp_path):
    blocks = [
        msgspec.structs.replace(under(2, "nw1", num_workers=1), settle_steps=1, steps=4, seconds=0),
        under(3, "nw0", num_workers=0),
    ]
    result = live(tmp_path, LIVE, "sleepy", blocks=blocks)
    assert_all_counted(result, blocks)
    first, second = [record.t_ns for record in result.all(LoaderIterated)][-2:]
    assert (second - first) / 1e9 < 20


# ----------------------------------------------------------------------------------------------------- ablations


def test_ablations_take_their_stages_away(tmp_path):
    result = live(tmp_path, PLAIN, "num_workers=1", blocks=ABLATIONS)
    assert_all_counted(result, ABLATIONS)
    by_trial = {block.trial: block for block in result.all(Block)}
    replayed = by_trial["compute_only"]
    assert replayed.wait_ms == 0
    assert replayed.optimizer_ms > 0
    drained = by_trial["loader_only-nw2-pin0"]
    assert drained.optimizer_ms == 0
    assert drained.wait_ms == pytest.approx(drained.seconds * 1e3, rel=0.1)
    workers = [len(record.worker_pids) for record in result.all(LoaderIterated)]
    assert workers == [1, 1, 1, 2, 1, 1], "replays collect from the script's own configuration"


def test_a_drain_in_natural_epochs_goes_on_with_the_next_one(tmp_path):
    drain = under(2, "loader_only-nw0-pin0", "ablation", num_workers=0, pin_memory=False)
    blocks = [msgspec.structs.replace(drain, steps=70), under(3, "as-written")]
    result = live(tmp_path, STYLES, "with_validation", natural_epochs=True, blocks=blocks)
    assert_all_counted(result, blocks)


def test_replays_in_natural_epochs_end_where_the_script_expects_it(tmp_path):
    blocks = [msgspec.structs.replace(under(2, "compute_only", "ablation"), steps=70), under(3, "as-written")]
    result = live(tmp_path, STYLES, "with_validation", natural_epochs=True, blocks=blocks)
    assert_all_counted(result, blocks)
    assert result.all(Block)[1].gap_s > 0


def test_a_block_without_a_treatment_runs_as_written_after_others(tmp_path):
    blocks = [under(2, "compute_only", "ablation"), order(block=3, seconds=0.05)]
    result = live(tmp_path, PLAIN, "num_workers=1", blocks=blocks)
    assert_all_counted(result, blocks)
    assert result.all(Block)[-1].wait_ms > 0


def test_what_cannot_be_replayed_is_refused_and_the_launch_goes_on(tmp_path):
    blocks = [under(2, "host_batch-pin1-nb1", "ablation", pin_memory=True, non_blocking=True), under(3, "as-written")]
    result = live(tmp_path, PLAIN, blocks=blocks)
    assert [block.status for block in result.all(Block)] == ["counted", "failed", "counted"]
    (refused,) = (record for record in result.all(TreatmentApplied) if "replay" in record.refused)
    assert "accelerator" in result.all(Block)[1].reason
    assert refused.refused["replay"] == result.all(Block)[1].reason


# ---------------------------------------------------------------------------------------------------------- windows


def test_windows_follow_the_last_block_one_a_treatment(tmp_path):
    windows = [under(3, "nw2", num_workers=2), under(4, "as-written"), under(5, "nw0", num_workers=0)]
    result = live(tmp_path, PLAIN, "num_workers=1", blocks=MIXED[:1], last=then(*windows, what="windows"))
    assert_all_counted(result, MIXED[:1])
    found = result.all(Window)
    assert [(window.trial, window.steps, window.reason) for window in found] == [
        (window.trial, 3, None) for window in windows
    ]
    assert [window.trace for window in found] == [f"traces/{window.trial}-1.json.gz" for window in windows]
    assert all((result.run.path / window.trace).stat().st_size > 0 for window in found)
    assert result.one(TargetEnded).how == "stopped"


# ----------------------------------------------------------------------------------------------------------- deaths


@pytest.mark.parametrize(
    ("style", "exception", "line"),
    [
        ("dying", "RuntimeError", "for rows in loader"),
        ("raising", "LookupError", "for rows in loader"),
        ("raising_later", "LookupError", "for rows in loader"),
        ("unpicklable", None, "for rows in loader"),
    ],
)
def test_a_treatment_that_kills_the_launch_has_failed_and_the_script_gets_its_exception(
    tmp_path, style, exception, line
):
    result = live(tmp_path, LIVE, style, blocks=MIXED)
    assert [(block.trial, block.status) for block in result.all(Block)] == [
        ("as-written", "counted"),
        ("nw2", "failed"),
    ]
    failed = result.one(TargetFailed)
    assert exception in (None, failed.exception)
    assert not failed.past_natural_end
    assert result.returncode == 1
    assert line in result.output
    assert "pindiag" not in result.output


def test_past_the_scripts_natural_end_is_said_in_live_launches_too(tmp_path):
    result = live(tmp_path, STYLES, "one_cycle", blocks=[under(2, "compute_only", "ablation")])
    assert result.one(TargetFailed).past_natural_end
    assert [block.status for block in result.all(Block)][-1] == "failed"
