from __future__ import annotations

from pathlib import Path

import pytest

from pindiag.probe import births, pinning, rings, worker_stages


class Clock:
    """Wall and CPU time that only pass where a test says so."""

    def __init__(self) -> None:
        self.wall_ns = 1_000
        self.cpu_ns = 0

    def monotonic_ns(self) -> int:
        return self.wall_ns

    def thread_time_ns(self) -> int:
        return self.cpu_ns

    def sleep(self, ns: int) -> None:
        self.wall_ns += ns

    def spin(self, ns: int) -> None:
        self.wall_ns += ns
        self.cpu_ns += ns


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (births, pinning, worker_stages):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def ring(tmp_path: Path) -> rings.Ring:
    return rings.Ring(str(tmp_path), 7, 3)
