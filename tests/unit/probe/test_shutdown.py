"""In which order an iterator of torch's is shut down while the target still holds it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pindiag.probe import shutdown


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch knows nothing of workers that never were."""
    monkeypatch.setattr(shutdown.signal_handling, "_remove_worker_pids", lambda _: None)


class Worker:
    """Told what is done to it."""

    def __init__(self, calls: list[str], *, sleeps: bool) -> None:
        self.calls = calls
        self.sleeps = sleeps
        self.gone = threading.Event()

    def kill(self) -> None:
        self.calls.append("kill")
        self.gone.set()

    def join(self, _: float) -> None:
        self.calls.append("join")


class Iterator:
    """What `shut_down` knows of torch's own."""

    def __init__(self, *, pins: bool = True, sleeps: bool = False, over: bool = False) -> None:
        self.calls: list[str] = []
        self._workers = [Worker(self.calls, sleeps=sleeps)]
        self._shutdown = over
        self._data_queue = self._task_info = object()
        self._worker_result_queue: Any = self
        if pins:
            self._pin_memory_thread_done_event = threading.Event()
            self._pin_memory_thread: Any = self
        self.put = lambda _: self.calls.append("wake the pin thread")
        self.join = lambda: self.calls.append("join the pin thread")

    def _shutdown_workers(self) -> None:
        self.calls.append("workers")
        for worker in self._workers:
            if worker.sleeps:
                worker.gone.wait(10)


def test_the_pin_thread_is_gone_before_a_worker_is_ended_or_another_forked() -> None:
    iterator = Iterator()
    shutdown.shut_down(iterator)
    assert iterator.calls == ["wake the pin thread", "join the pin thread", "workers", "kill", "join"]
    assert iterator._pin_memory_thread_done_event.is_set()


def test_a_worker_that_sleeps_is_killed_after_its_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutdown, "GRACE_S", 0.01)
    iterator = Iterator(pins=False, sleeps=True)
    shutdown.shut_down(iterator)
    assert iterator.calls == ["workers", "kill", "kill", "join"]


@pytest.mark.parametrize("over", [False, True])
def test_what_was_fetched_is_let_go(over: bool) -> None:
    iterator = Iterator(over=over)
    shutdown.shut_down(iterator)
    assert not {"_data_queue", "_task_info"} & set(vars(iterator))
    assert bool(iterator.calls) != over
