"""Live launches: many treatments in one process, behind one loop that is not to notice."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from pindiag.model import (
    Block,
    LoaderChosen,
    LoaderIterated,
    TargetEnded,
)

from .probe_harness import TARGETS, key, launch, then, under

pytestmark = pytest.mark.integration

INDICES = TARGETS / "indices.py"
PINNED = TARGETS / "pinned.py"
PLAIN = TARGETS / "plain.py"
STYLES = TARGETS / "styles.py"

MIXED = [
    under(2, "nw2", num_workers=2),
    under(3, "nw0", num_workers=0),
    under(4, "nw2", num_workers=2),
    under(5, "nw2", num_workers=2),
    under(6, "nw1-pf4", num_workers=1, prefetch_factor=4),
    under(7, "as-written"),
]
ABLATIONS = [
    under(2, "nw1", num_workers=1),
    under(3, "compute_only", "ablation"),
    under(4, "loader_only-nw2-pin0", "ablation", num_workers=2, pin_memory=False),
    under(5, "host_batch-pin0-nb0", "ablation", pin_memory=False, non_blocking=False),
    under(6, "as-written"),
]

WORKERS_MATTER = ("eager", "persistent")
"""Styles whose sampler's seeds depend on whether torch makes a new iterator with workers for each epoch."""


def live(tmp_path, target, *args, blocks, last=None, **changes):
    answers = [*map(then, blocks), *([last] if last else [])]
    return launch(tmp_path, target, *args, isolation="live", answers=answers, **changes)


def as_without_us(tmp_path, style, workers, epochs):
    path = tmp_path / "without.txt"
    if style not in WORKERS_MATTER:
        workers = 0
    subprocess.run([sys.executable, INDICES, style, str(workers), str(epochs), path], check=True)
    return path.read_text().splitlines()


def assert_all_counted(result, blocks):
    assert result.returncode == 0, result.output
    assert "Traceback" not in result.output
    assert [(block.block, block.status) for block in result.all(Block)] == [
        (number, "counted") for number in range(1, len(blocks) + 2)
    ], result.output


# ------------------------------------------------------------------------------------------------ the script's batches


@pytest.mark.parametrize(
    ("style", "workers", "told"),
    [
        ("plain", 0, False),
        ("plain", 2, True),
        ("distributed", 2, False),
        ("distributed_by_count", 0, True),
        ("distributed_by_count", 2, False),
        ("batch_sampler", 2, False),
        ("generator", 0, True),
        ("eager", 2, False),
        ("single", 1, False),
        ("persistent", 2, False),
    ],
)
def test_the_script_gets_the_batches_of_its_sampler(tmp_path, style, workers, told):
    path = tmp_path / "with.txt"
    loader = key(INDICES, "loader = DataLoader(") if told else None
    result = live(tmp_path, INDICES, style, str(workers), "100000", str(path), blocks=MIXED, loader=loader)
    assert_all_counted(result, MIXED)
    assert result.output == ""
    got = path.read_text().splitlines()
    assert len(got) > 80, "two epochs and more"
    assert got == as_without_us(tmp_path, style, workers, 1 + len(got) // 10)[: len(got)]
    assert [record.trial for record in result.all(LoaderIterated)] == [None, *(block.trial for block in MIXED)]


@pytest.mark.parametrize("style", ["plain", "distributed"])
def test_natural_epochs_leave_the_script_its_batches_its_random_numbers_and_its_end(tmp_path, style):
    path = tmp_path / "with.txt"
    few = {"steps": 12, "settle_steps": 2}
    blocks = [msgspec.structs.replace(block, **few) for block in [*MIXED[:3], MIXED[4]]]
    unending = msgspec.structs.replace(MIXED[0], block=9, steps=100_000)
    result = live(
        tmp_path,
        INDICES,
        style,
        "1",
        "30",
        str(path),
        natural_epochs=True,
        blocks=[*blocks, unending],
    )
    assert path.read_text().splitlines() == as_without_us(tmp_path, style, 1, 30)
    assert result.one(TargetEnded).how == "finished"
    assert [block.status for block in result.all(Block)] == ["counted"] * 6
    assert "ended before" in result.all(Block)[-1].reason


# ------------------------------------------------------------------------------------------------------ all loops


@pytest.mark.parametrize(
    "style",
    [
        "iterable",
        "iterable_workers",
        "own_batch_sampler",
        "no_batch_size",
        "custom_collate",
        "lambda_collate",
        "worker_init",
        "subclass",
        "by_hand",
        "rebuilt",
        "one_batch_each",
        "with_validation",
        "nested_validation",
        "by_count",
        "early_break",
        "zipped",
        "hand_written_sgd",
        "inference",
        "accumulating",
        "generator",
    ],
)
def test_all_loops_are_served_under_all_kinds_of_treatments(tmp_path, style):
    result = live(tmp_path, STYLES, style, blocks=ABLATIONS)
    assert_all_counted(result, ABLATIONS)
    samples = result.one(LoaderChosen).batch_samples
    assert all(block.samples == samples * block.steps for block in result.all(Block))
    assert result.one(TargetEnded).how == "stopped"
