"""What a session hands from one launch to the next, and what it does when it cannot write."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path

import pytest

from pindiag.errors import DiskFull
from pindiag.launch.cpus import usable_cpus
from pindiag.model import (
    BlockOrder,
    FilesSettled,
    LaunchBegan,
    LaunchEnded,
    LaunchOrder,
    Machine,
    RunEnded,
    Unmeasured,
)

from .launches import MARK, Script, order, session, times, treatment, wait_until_gone

pytestmark = pytest.mark.integration


def test_later_launches_are_told_the_loader(tmp_path: Path) -> None:
    made = session(tmp_path, "chooses", "100")
    made.run(times(2))
    told = [json.loads(record.reason) for record in made.records if isinstance(record, Unmeasured)]
    assert told == [None, {"location": "/train.py:7", "ordinal": 1}]


@pytest.mark.parametrize(("workers", "batch_size", "started"), [(2, 8, True), (8, 8 << 30, False)])
def test_treatment_that_would_not_fit_is_not_started(
    tmp_path: Path, workers: int, batch_size: int, started: bool
) -> None:
    blocks = [BlockOrder(block=2, round=1, trial="other")]
    other = LaunchOrder(purpose="round", treatment=treatment("other", workers, batch_size), blocks=blocks)
    made = session(tmp_path, "chooses", "1000")
    made.run(Script([order(1), other]))
    began = [record for record in made.records if isinstance(record, LaunchBegan)][1]
    ended = [record for record in made.records if isinstance(record, LaunchEnded)][1]
    assert (began.pid > 0) == started
    assert ended.status == ("ok" if started else "failed")
    assert started or ("not started" in ended.exit and "out of memory" in (ended.reason or ""))
    assert isinstance(made.records[-1], RunEnded)


def test_machine_comes_first(tmp_path: Path) -> None:
    made = session(tmp_path, "ordinary")
    made.run(times(0))
    machine, settled, ended = made.records
    assert isinstance(machine, Machine) and isinstance(settled, FilesSettled) and isinstance(ended, RunEnded)
    assert (machine.usable_cpus, machine.usable_cpus_reason) == usable_cpus()
    assert machine.logical_cpus == os.cpu_count()
    assert 0 < machine.memory_available_bytes <= machine.memory_bytes
    assert machine.gpus or "gpus" in machine.missing
    assert len(machine.fingerprint) == 16


@pytest.mark.parametrize("journal", ["parent.jsonl", "sampler-001.jsonl"])
def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: str) -> None:
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    made = session(tmp_path, "sleeping_workers")
    (tmp_path / "out" / "journal" / journal).symlink_to("/dev/full")
    with pytest.raises(DiskFull, match="disk of .* is full; what was measured before is kept"):
        made.run(times(1))
    wait_until_gone(mark, 0)


def test_environment_of_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "disabled")
    monkeypatch.delenv("COMET_START_ONLINE", raising=False)
    made = session(tmp_path, "tells_environment")
    made.run(times(1))
    told = json.loads(next(record.reason for record in made.records if isinstance(record, Unmeasured)))
    assert told["WANDB_MODE"] == "disabled"
    assert told["COMET_START_ONLINE"] == "false"
    assert told["cwd"] == str(tmp_path)
    assert told["leads"] == [True, True]
    assert told["stdin"] == ""
    assert not {fd for fd in told["fds"] if fd > 2} - set(told["pipes"])
