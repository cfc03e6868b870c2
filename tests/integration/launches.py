"""Sessions over the fake probe."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import psutil

from pindiag.launch.patience import Limits
from pindiag.launch.session import Session
from pindiag.model import AnyRecord, BlockOrder, Configuration, LaunchOrder, NextBlocks, RunSpec, Treatment
from pindiag.store import RunDirectory

FAKE_PROBE = Path(__file__).parent / "fake_probe"
MARK = "PINDIAG_TEST_MARK"


def order(number: int, **fields: object) -> LaunchOrder:
    blocks = [BlockOrder(block=number, round=1, trial="baseline", seconds=0.1)]
    return LaunchOrder(purpose="discover", treatment=None, blocks=blocks, **fields)


def treatment(name: str, workers: int, batch_size: int = 8) -> Treatment:
    """A configuration that differs from the fake probe's loader in these two."""
    configuration = Configuration(
        num_workers=workers,
        pin_memory=False,
        non_blocking=None,
        prefetch_factor=2,
        persistent_workers=False,
        batch_size=batch_size,
    )
    changes = {"num_workers": workers, "batch_size": batch_size}
    return Treatment(id=name, kind="configuration", configuration=configuration, changes=changes)


def block(number: int, trial: str, workers: int) -> BlockOrder:
    """A block of a live launch."""
    return BlockOrder(block=number, round=1, trial=trial, seconds=0.1, treatment=treatment(trial, workers))


def live(*blocks: BlockOrder) -> LaunchOrder:
    """A live launch that begins with these blocks."""
    return LaunchOrder(purpose="round", isolation="live", treatment=None, blocks=list(blocks))


def in_turn(*blocks: BlockOrder) -> Script:
    """A live launch that is told one block at a time."""
    return Script([live(blocks[0])], [NextBlocks(blocks=[block]) for block in blocks[1:]])


class Script:
    """A plan that was written beforehand: these launches, and in live ones these blocks after the first."""

    def __init__(self, launches: Iterable[LaunchOrder], told: Iterable[NextBlocks] = ()) -> None:
        self._launches = iter(launches)
        self._told = iter(told)
        self.asked: list[list[AnyRecord]] = []
        """What was known each time that blocks were asked for."""

    def next_launch(self, _: Sequence[AnyRecord]) -> LaunchOrder | None:
        return next(self._launches, None)

    def next_blocks(self, records: Sequence[AnyRecord]) -> NextBlocks:
        self.asked.append(list(records))
        return next(self._told, NextBlocks())


def times(count: int, **fields: object) -> Script:
    """Order `count` fresh launches."""
    return Script(order(number, **fields) for number in range(1, count + 1))


def session(
    folder: Path,
    behaviour: str,
    *words: str,
    wait_s: float = 20.0,
    limits: Limits | None = None,
    on_record: Callable[[AnyRecord], None] = lambda record: None,
    probe: Path = FAKE_PROBE,
) -> Session:
    """A session whose target behaves as a function of the fake probe."""
    (folder / "train.py").write_text("")
    spec = RunSpec(
        target=str(folder / "train.py"),
        module=False,
        args=[behaviour, *words],
        cwd=str(folder),
        python=sys.executable,
        started_utc="2026-01-01T00:00:00+00:00",
        command=["pindiag", "run", "train.py"],
        sweep=True,
        grid=None,
        budget_s=60,
        rounds=1,
        steps=None,
        seed=0,
        device=None,
        loader=None,
        wait_s=wait_s,
        usable_cpus=2,
        pindiag_version="0",
    )
    run = RunDirectory.create(folder / "out")
    run.write_spec(spec)
    return Session(spec, run, on_record=on_record, limits=limits, probe=probe)


def alive(mark: str) -> list[psutil.Process]:
    """Processes with a mark in their environment, this one left out."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return [process for process in found if process.pid != os.getpid()]


def wait_until_gone(mark: str, limit_s: float) -> None:
    end = time.monotonic() + limit_s
    while (left := alive(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not left, [(process.pid, process.cmdline()) for process in left]


if __name__ == "__main__":
    folder, behaviour = Path(sys.argv[1]), sys.argv[2]
    blocks = [block(number, f"trial {number}", number) for number in range(1, 9)]
    session(folder, behaviour, "1").run(in_turn(*blocks) if behaviour.startswith("live") else times(2))
