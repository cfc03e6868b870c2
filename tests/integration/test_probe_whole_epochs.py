"""Whole epochs of real loops: iterators begin and end as they would without the probe."""

from __future__ import annotations

from pathlib import Path

import pytest

from pindiag.model import Block, LoaderChosen, LoaderIterated, LoaderKey, TargetEnded

from .probe_harness import TARGETS, Result, launch, order, treatment

pytestmark = pytest.mark.integration

STYLES = TARGETS / "styles.py"


def whole(folder: Path, style: str, **changes: object) -> Result:
    """Two epochs of the first loader that a style makes."""
    lines = STYLES.read_text().splitlines()
    begin = lines.index(f"def {style}(t):")
    line = next(number for number, text in enumerate(lines, 1) if number > begin and "Loader(" in text)
    key = LoaderKey(location=f"{STYLES}:{line}", ordinal=0)
    return launch(folder, STYLES, style, loader=key, treatment=treatment(**changes), blocks=[order(epochs=2, steps=40)])


def births(result: Result) -> list[LoaderIterated]:
    chosen = result.one(LoaderChosen).loader
    return [record for record in result.all(LoaderIterated) if record.loader == chosen]


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_start_anew_with_each_epoch_unless_they_persist(tmp_path: Path, persistent: bool) -> None:
    result = whole(tmp_path, "with_validation", num_workers=2, persistent_workers=persistent)
    block = result.one(Block)
    assert (block.status, block.steps, block.samples) == ("counted", 39, 312), result.output
    assert block.epochs is not None and block.epochs.epochs == 2
    assert block.seconds + block.gap_s == pytest.approx((block.ended_ns - block.started_ns) / 1e9)
    assert block.seconds > sum(block.step_ms) / 1e3 + block.epochs.startup_s
    assert block.epochs.steady_steps == 40 - 2 * 7 - 1
    first, second = births(result)
    assert len(first.worker_pids) == 2
    assert (first.worker_pids == second.worker_pids) is persistent
    assert result.one(TargetEnded).how == "stopped"


@pytest.mark.parametrize(("style", "steps"), [("by_count", 39), ("early_break", 23), ("rebuilt", 39)])
def test_loops_of_other_kinds(tmp_path: Path, style: str, steps: int) -> None:
    result = whole(tmp_path, style)
    block = result.one(Block)
    assert block.epochs is not None and block.epochs.epochs == 2
    assert (block.status, block.steps) == ("counted", steps), result.output
    assert result.one(TargetEnded).how == "stopped"


def test_a_script_of_a_single_epoch(tmp_path: Path) -> None:
    result = whole(tmp_path, "short")
    block = result.one(Block)
    assert block.epochs is not None and block.epochs.epochs == 1
    assert (block.status, block.steps) == ("counted", 19)
    assert result.one(TargetEnded).how == "finished"
