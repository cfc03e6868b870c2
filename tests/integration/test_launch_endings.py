"""However a launch ends, its record says so in words and no process of it is left."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from pindiag.launch.patience import Limits
from pindiag.model import (
    Block,
    FilesSettled,
    FirstStep,
    LaunchBegan,
    LaunchEnded,
    Machine,
    MemoryRead,
    RunEnded,
    Sample,
    StorageSeen,
    Unmeasured,
)
from pindiag.store import RunDirectory

from .launches import session, times, wait_until_gone

pytestmark = pytest.mark.integration

SHORT = Limits(hang_s=0.4, leave_s=0.4, export_s=0.2)


def test_ordinary_launches(tmp_path: Path, mark: str) -> None:
    heard: list[object] = []
    made = session(tmp_path, "ordinary", on_record=heard.append)
    ended = made.run(times(2))
    assert (ended.status, ended.reason) == ("ok", None)
    kinds = [type(record) for record in made.records]
    assert kinds[0] is Machine and kinds[-1] is RunEnded
    assert kinds.count(LaunchBegan) == kinds.count(Block) == kinds.count(LaunchEnded) == 2
    read = [record.phase for record in made.records if isinstance(record, MemoryRead)]
    assert read == ["settling", "counted", "settling", "counted"]
    assert kinds.count(FilesSettled) == 3
    assert heard == made.records
    launches = [record for record in made.records if isinstance(record, LaunchEnded)]
    assert {(launch.status, launch.exit, launch.returncode) for launch in launches} == {
        ("ok", "stopped after the schedule", 0)
    }
    stored = RunDirectory.open(tmp_path / "out").records()
    sampled = (Sample, StorageSeen)  # the sampler's own records, made as its ticks fall
    assert [r for r in stored if not isinstance(r, sampled)] == sorted(made.records, key=lambda r: r.t_ns)
    assert any(isinstance(record, Sample) for record in stored)
    log = (tmp_path / "out" / "target.log").read_text()
    assert log.count("hello from the target") == 2
    assert log.startswith("==== launch 1: the script as written (discover)\n")
    wait_until_gone(mark, 0)


@pytest.mark.parametrize(("profile", "answer"), [(False, "stop"), (True, "profile")])
def test_answer_after_the_last_block(tmp_path: Path, profile: bool, answer: str) -> None:
    made = session(tmp_path, "ordinary")
    made.run(times(1, profile=profile))
    assert [record.reason for record in made.records if isinstance(record, Unmeasured)] == [answer]


ENDS = {
    "raises": ("failed", "exit status 1", "ValueError: planted"),
    "ends_early": ("ok", "exit status 0", None),
    "worker_dies": ("failed", "exit status 1", "a worker was killed by SIGKILL, which pindiag did not send"),
    "kills_itself": ("failed", "killed by SIGKILL", "SIGKILL, which pindiag did not send"),
    "closes_pipe": ("failed", "exit status 7", "exit status 7"),
    "never_steps": ("failed", "killed by pindiag", "no training step within 0.5 s (--wait)"),
    "hangs_after_step": ("failed", "killed by pindiag", "no progress for 0.5 s"),
    "ignores_stop": ("ok", "stopped after the schedule", "did not end within 0.4 s"),
    "leaves_setsid_workers": ("ok", "stopped after the schedule", None),
}


@pytest.mark.parametrize("behaviour", ENDS)
def test_ends(tmp_path: Path, mark: str, behaviour: str) -> None:
    made = session(tmp_path, behaviour, wait_s=0.5, limits=SHORT)
    assert made.run(times(1)).status == "ok"
    launch = next(record for record in made.records if isinstance(record, LaunchEnded))
    status, exit, reason = ENDS[behaviour]
    assert (launch.status, launch.exit) == (status, exit)
    assert launch.reason is None if reason is None else reason in (launch.reason or "")
    wait_until_gone(mark, 0)


def test_helper_that_tidies_shared_memory_gets_a_moment(tmp_path: Path, mark: str) -> None:
    made = session(tmp_path, "has_tidier", limits=SHORT)
    made.run(times(1))
    assert (tmp_path / "tidied").exists()
    wait_until_gone(mark, 0)


def test_target_killed_within_its_first_second(tmp_path: Path, mark: str) -> None:
    def kill(record: object) -> None:
        if isinstance(record, LaunchBegan):
            os.kill(record.pid, signal.SIGKILL)

    made = session(tmp_path, "never_steps", on_record=kill)
    assert made.run(times(1)).status == "ok"
    launch = next(record for record in made.records if isinstance(record, LaunchEnded))
    assert (launch.status, launch.exit) == ("failed", "killed by SIGKILL")
    wait_until_gone(mark, 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupt_while_workers_sleep(tmp_path: Path, mark: str, number: signal.Signals) -> None:
    def interrupt(record: object) -> None:
        if isinstance(record, FirstStep):
            threading.Timer(0.2, os.kill, (os.getpid(), number)).start()
        if isinstance(record, LaunchEnded):  # a second one meets the clean-up
            os.kill(os.getpid(), number)

    made = session(tmp_path, "sleeping_workers", on_record=interrupt)
    handler = signal.getsignal(number)
    began_s = time.monotonic()
    ended = made.run(times(5))
    took_s = time.monotonic() - began_s
    assert ended.status == "interrupted"
    launches = [record for record in made.records if isinstance(record, LaunchEnded)]
    assert [launch.status for launch in launches] == ["interrupted"]
    assert [type(record) for record in made.records[-3:]] == [FilesSettled, FilesSettled, RunEnded]
    assert took_s < 7
    assert signal.getsignal(number) is handler
    wait_until_gone(mark, 0)


def test_listener_that_raises_leaves_no_process(tmp_path: Path, mark: str) -> None:
    def fail(record: object) -> None:
        if isinstance(record, Block):
            raise ValueError("planted in the listener")

    made = session(tmp_path, "ordinary", on_record=fail)
    with pytest.raises(ValueError, match="planted"):
        made.run(times(1))
    assert isinstance(made.records[-1], RunEnded)
    assert made.records[-1].status == "failed"
    wait_until_gone(mark, 0)
