"""The probe's profiler window and the target's own sessions, in processes of their own: torch keeps one a process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from pindiag.probe.profiler import Window, _all_threads

SCRIPT = """
import json, sys, threading
import torch
from torch.profiler import profile, schedule
from pindiag.probe.profiler import Window
from pindiag.probe.turns import turns

def work():
    torch.ones(4, 4) @ torch.ones(4, 4)

def own():
    with profile() as mine:
        work()
    return sum(event.name == "aten::matmul" for event in mine.events())

def steps(window, number):
    for _ in range(number):
        work()
        if window.step():
            return

turns.install()
for case in sys.argv[1].split():
    path = f"{sys.argv[2]}/{case}.json.gz"
    seen = None
    if case == "before":
        with profile() as mine:
            window = Window(path, "t", 3, 0)
            steps(window, 20)
        seen = sum(event.name == "aten::matmul" for event in mine.events())
    elif case == "prepared":
        mine = profile(schedule=schedule(wait=0, warmup=1, active=1))
        mine.start()
        window = Window(path, "t", 3, 0)
        steps(window, 20)
        mine.step()
        work()
        mine.stop()
        seen = sum(event.name == "aten::matmul" for event in mine.events())
    elif case == "refused":
        def refuse(*_):
            raise RuntimeError("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")
        torch.profiler.profile.start = refuse
        window = Window(path, "t", 3, 0)
        steps(window, 20)
    else:
        window = Window(path, "t", 3, 0)
        steps(window, {"warm": 1, "running": 4, "thread": 4, "after": 20}[case])
        if case == "thread":
            found = []
            thread = threading.Thread(target=lambda: found.append(own()))
            thread.start()
            thread.join()
            seen = found[0]
        else:
            seen = own()
        steps(window, 20)
    window.finish()
    print(json.dumps({"case": case, **window.record(), "seen": seen}))
"""
OWN = "the script runs a profiler of its own"
IN_ANY_THREAD = _all_threads() is not None
"""Whether a session can be ended by another thread than its own: not in torch 2.6."""
CHILDREN = ("before prepared", f"running {'thread' if IN_ANY_THREAD else ''} warm after refused")
"""Cases that share a process: in one the script has the first session, in the other the probe."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each case printed."""
    lines: list[str] = []
    for cases in CHILDREN:
        words = [sys.executable, "-c", SCRIPT, cases, str(tmp_path_factory.mktemp("traces"))]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        lines += [line for line in done.stdout.splitlines() if line.startswith("{")]
    return {found["case"]: found for found in map(json.loads, lines)}


@pytest.mark.parametrize(
    ("case", "steps", "reason", "seen"),
    [
        ("before", 0, OWN, 1),
        ("prepared", 0, OWN, 1),
        ("warm", 0, OWN, 1),
        ("running", 0, OWN, 1),
        pytest.param(
            *("thread", 0, OWN, 1),
            marks=pytest.mark.skipif(not IN_ANY_THREAD, reason="torch 2.6 ends a session in its own thread only"),
        ),
        ("after", 3, None, 1),
        ("refused", 0, "RuntimeError: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", None),
    ],
)
def test_the_targets_session_goes_first(
    told: dict[str, dict[str, Any]], case: str, steps: int, reason: str | None, seen: int | None
) -> None:
    found = told[case]
    assert (found["steps"], found["reason"], found["seen"]) == (steps, reason, seen)
    assert (found["trace"] is None) == (reason is not None)


def test_a_window_is_short_and_keeps_neither_stacks_nor_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions without an end, and those with stacks, have taken all the memory of their machines."""
    asked: dict[str, Any] = {}

    class Profiler:
        def __init__(self, **words: Any) -> None:
            asked.update(words)

        def start(self) -> None:
            asked["started"] = True

    monkeypatch.setattr(torch.profiler, "profile", Profiler)
    monkeypatch.setattr(torch.profiler, "schedule", dict)
    Window(str(tmp_path / "t.json.gz"), "t", 10, 0)
    assert asked["started"]
    assert not {"with_stack", "profile_memory", "record_shapes", "with_modules"} & {n for n, v in asked.items() if v}
    assert asked["schedule"]["active"] == 10
    assert asked["schedule"]["repeat"] == 1
