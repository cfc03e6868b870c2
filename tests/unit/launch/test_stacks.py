"""Stacks of pretended processes: their memory is this process's own, which is the only real one here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import pindiag.probe.stacks as probe
from pindiag.launch import stacks
from pindiag.model import Process

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no anonymous files")

ME = os.getpid()
GONE = 2**22 + 1
"""No process has this id: it is more than the kernel gives."""


def process(pid: int, role: str, state: str = "S") -> Process:
    return Process(
        pid=pid,
        role=role,
        cpu_s=0,
        rss_bytes=0,
        threads=1,
        voluntary_switches=None,
        involuntary_switches=None,
        minor_faults=None,
        major_faults=None,
        run_delay_s=None,
        read_bytes=None,
        state=state,
    )


@pytest.fixture
def memory() -> Iterator[int]:
    """What this process would have offered as a target."""
    fd = os.memfd_create(f"{stacks.NAME}{ME}")
    yield fd
    os.close(fd)


def read(processes: Sequence[Process], **given: Any) -> str:
    """The stacks, on a machine that may have py-spy."""
    return stacks.read(processes, **{"look": lambda pids: {}, **given})


class Answering:
    """Writes the next part of its answer at each pause after the signal."""

    def __init__(self, fd: int, *parts: str) -> None:
        self.fd = fd
        self.parts = list(parts)
        self.sent: list[tuple[int, int]] = []
        self.pauses = 0
        self.send: Callable[[int, int], None] = lambda pid, number: self.sent.append((pid, number))

    def pause(self, _: float) -> None:
        self.pauses += 1
        assert self.sent
        if self.parts:
            os.write(self.fd, self.parts.pop(0).encode())


def test_both_sides_name_the_memory_alike() -> None:
    assert stacks.NAME == probe.NAME


def test_text_is_read_once_it_grows_no_more(memory: int) -> None:
    target = Answering(memory, "", "Thread 1\n", "", "never read")
    text = read([process(ME, "worker")], send=target.send, pause=target.pause)
    assert text == f"==== process {ME} (worker)\nThread 1\n"
    assert target.sent == [(ME, stacks.SIGNAL)]
    assert target.pauses == 3


def test_no_answer_is_waited_for_no_longer_than_the_limit(memory: int) -> None:
    target = Answering(memory)
    text = read([process(ME, "main", state="D")], send=target.send, pause=target.pause)
    assert text == f"==== process {ME} (main)\nno stack: it did not answer within 2 s (its state: D)\n"
    assert target.pauses * stacks.PAUSE_S == pytest.approx(stacks.ANSWER_S)


def test_one_that_died_meanwhile_has_no_stack(memory: int) -> None:
    def send(pid: int, number: int) -> None:
        raise ProcessLookupError

    assert "did not answer" in read([process(ME, "main")], send=send, pause=lambda _: None)


def test_only_those_that_offered_are_asked(memory: int) -> None:
    """A signal would end any other; forked children of the script hold their parent's memory, not one of their own."""
    parent = os.getppid()
    target = Answering(memory, "main's\n")
    others = [process(parent, "worker"), process(GONE, "worker"), process(GONE + 1, "other")]
    text = read([process(ME, "main"), *others], send=target.send, pause=target.pause)
    assert [pid for pid, _ in target.sent] == [ME]
    assert text.count("no stack: it had not come so far") == 2
    assert f"{GONE + 1}" not in text


def test_memory_of_another_process_is_none_of_its_own(memory: int) -> None:
    inherited = os.memfd_create(f"{stacks.NAME}{GONE}")
    os.close(memory)
    try:
        text = read([process(ME, "worker")], send=pytest.fail, pause=lambda _: None)
    finally:
        os.dup2(inherited, memory)  # for the fixture to close
        os.close(inherited)
    assert "no stack: it had not come so far" in text


def test_a_system_without_such_signals_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "SIGNAL", 0)
    text = read([process(GONE, "main")], send=pytest.fail, pause=lambda _: None)
    assert text == f"==== process {GONE} (main)\nno stack: this system has no real-time signals to ask for it\n"


def test_who_is_seen_from_outside_gets_no_signal(memory: int) -> None:
    asked: list[int] = []

    def look(pids: Sequence[int]) -> dict[int, str]:
        asked.extend(pids)
        return {ME: "Process 1\n"}

    processes = [process(GONE, "worker"), process(ME, "main"), process(GONE + 1, "other")]
    text = read(processes, look=look, send=pytest.fail, pause=lambda _: None)
    assert asked == [ME, GONE]
    assert f"==== process {ME} (main)\nProcess 1\n" in text
    assert f"==== process {GONE} (worker)\nno stack:" in text
