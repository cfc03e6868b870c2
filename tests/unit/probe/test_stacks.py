"""What a process offers to the parent, asked by this process itself."""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from pindiag.probe import stacks

SIGNAL = getattr(signal, "SIGRTMAX", 1) - 1


@pytest.fixture
def taken_back() -> Iterator[None]:
    before = set(os.listdir("/proc/self/fd"))
    yield
    faulthandler.unregister(SIGNAL)
    for fd in set(os.listdir("/proc/self/fd")) - before:
        try:
            os.close(int(fd))
        except OSError:
            continue  # what the listing itself had opened


def memory() -> str:
    """Where this process's stacks are read."""
    name = f"/memfd:{stacks.NAME}{os.getpid()} (deleted)"
    paths = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    (found,) = [path for path in paths if os.path.islink(path) and os.readlink(path) == name]
    return found


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no anonymous files")
def test_the_signal_writes_the_stacks_of_all_threads(taken_back: None) -> None:
    go_on = threading.Event()

    def waits_in_a_thread() -> None:
        go_on.wait()

    thread = threading.Thread(target=waits_in_a_thread)
    thread.start()
    try:
        stacks.offer()
        path = memory()
        assert os.stat(path).st_size == 0
        os.kill(os.getpid(), SIGNAL)
        with open(path) as text:
            read = text.read()
    finally:
        go_on.set()
        thread.join()
    assert "in waits_in_a_thread" in read
    assert "in test_the_signal_writes_the_stacks_of_all_threads" in read
    assert not os.get_inheritable(int(path.rpartition("/")[2]))


@pytest.mark.parametrize("missing", [(os, "memfd_create"), (signal, "SIGRTMAX")])
def test_nothing_is_offered_where_the_system_cannot(
    missing: tuple[object, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(*missing, raising=False)
    monkeypatch.setattr(faulthandler, "register", pytest.fail)
    stacks.offer()


def test_a_process_without_a_descriptor_left_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: str) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "memfd_create", full, raising=False)
    monkeypatch.setattr(faulthandler, "register", pytest.fail)
    stacks.offer()
