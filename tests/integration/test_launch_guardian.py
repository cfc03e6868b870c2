"""When pindiag itself is killed, nothing of the target outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from pindiag.launch.kept import settle_unsettled
from pindiag.model import Block
from pindiag.store import RunDirectory

from .launches import MARK, alive, wait_until_gone
from .product import LONG_S

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]


def start(folder: Path, behaviour: str, mark: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.integration.launches", str(folder), behaviour],
        cwd=ROOT,
        env={**os.environ, MARK: mark},
    )


def wait_for(folder: Path, text: str) -> None:
    end = time.monotonic() + LONG_S
    while time.monotonic() < end:
        if any(text in path.read_text() for path in (folder / "out" / "journal").glob("*.jsonl")):
            return
        time.sleep(0.01)
    raise AssertionError(f"no journal holds {text}")


@pytest.mark.parametrize(
    ("behaviour", "text"),
    [
        ("sleeping_workers", '"first_step"'),
        ("ignores_stop", '"samples"'),
        ("never_steps", '"launch_began"'),
        ("writes_on", '"first_step"'),
        ("live_hangs", '"block":3'),
    ],
)
def test_parent_killed(tmp_path: Path, behaviour: str, text: str) -> None:
    mark = uuid.uuid4().hex
    parent = start(tmp_path, behaviour, mark)
    wait_for(tmp_path, text)
    assert len(alive(mark)) >= 3  # the parent, its guardian, the target
    parent.kill()
    parent.wait()
    wait_until_gone(mark, 3)


def test_measured_blocks_survive_the_parent(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    parent = start(tmp_path, "ignores_stop", mark)
    wait_for(tmp_path, '"samples"')
    parent.kill()
    parent.wait()
    wait_until_gone(mark, 3)
    run = RunDirectory.open(tmp_path / "out")
    settle_unsettled(run)
    assert [record.block for record in run.records() if isinstance(record, Block)] == [1]


def test_signals_meant_for_the_terminal_do_not_end_the_guardian(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    parent = start(tmp_path, "sleeping_workers", mark)
    wait_for(tmp_path, '"first_step"')
    for process in alive(mark):
        if "guardian.py" in " ".join(process.cmdline()):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                process.send_signal(number)
    parent.kill()
    parent.wait()
    wait_until_gone(mark, 3)
