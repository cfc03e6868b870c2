"""Making the directory of a run that was killed or interrupted fit to go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from pindiag.errors import ResumeRefused
from pindiag.launch import guardian, kept
from pindiag.launch.launch import mark
from pindiag.model import AnyRecord, LaunchBegan, LaunchEnded, RunResumed
from pindiag.store import RunDirectory

LEAVE_S = 5.0
"""How long workers that were orphaned may take to notice it."""
AFTER_RESTART_NS = 1_000_000_000


def prepare(run: RunDirectory, *, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
    """End what is left of the run's processes, close the launch that never ended, and put the user's files back.

    Args:
        run: a run in which no pindiag is running.
        clock_ns: the clock of all records.

    Raises:
        ResumeRefused: a process of the run cannot be ended.
    """
    _end_processes(run)
    _end_torn_line(run)
    records = run.records()
    last = last_launch(run, records)
    _write(run, [_closed(launch, records) for launch in _unended(records)])
    kept.settle_unsettled(run, resumed=True)
    latest_ns = max((record.t_ns for record in records), default=0)
    now_ns = clock_ns()
    back_ns = latest_ns - now_ns + AFTER_RESTART_NS if latest_ns > now_ns else 0
    _write(run, [RunResumed(launch=0, t_ns=now_ns, launches=last, clock_back_ns=back_ns)])


def last_launch(run: RunDirectory, records: Sequence[AnyRecord]) -> int:
    """The highest number that a launch of the run has; 0 where there was none."""
    ordered = [int(path.stem.rpartition("-")[2]) for path in (run.path / "probe").glob("launch-*.json")]
    return max([*ordered, *(record.launch for record in records)], default=0)


def _end_processes(run: RunDirectory) -> None:
    """By their command lines: numbers of processes and groups may be others' by now."""
    ended = guardian.kill((), mark(run))
    until_s = time.monotonic() + LEAVE_S
    while kept.is_touched(run) and time.monotonic() < until_s:
        time.sleep(guardian.PAUSE_S)
    if not ended or kept.is_touched(run):
        raise ResumeRefused(
            f"A process of the run in {run.path} is still there and cannot be ended.",
            "End it by hand, then give the command again.",
        )


def _end_torn_line(run: RunDirectory) -> None:
    """What the parent was killed at writing must not swallow what is written next."""
    journal = run.journal / "parent.jsonl"
    if journal.is_file() and not journal.read_bytes().endswith(b"\n"):
        _append(run, b"\n")


def _unended(records: Sequence[AnyRecord]) -> list[int]:
    ended = {record.launch for record in records if isinstance(record, LaunchEnded)}
    return sorted({record.launch for record in records} - ended - {0})


def _closed(launch: int, records: Sequence[AnyRecord]) -> LaunchEnded:
    """It took of the budget what it is known to have lived, not what the run lay idle."""
    own = [record for record in records if record.launch == launch]
    last_ns = max(record.t_ns for record in own)
    began_ns = next((record.t_ns for record in own if isinstance(record, LaunchBegan)), own[0].t_ns)
    return LaunchEnded(
        launch=launch,
        t_ns=last_ns,
        status="interrupted",
        exit="killed with pindiag",
        returncode=None,
        seconds=(last_ns - began_ns) / 1e9,
        reason="pindiag was killed while it ran",
    )


def _write(run: RunDirectory, records: Sequence[AnyRecord]) -> None:
    _append(run, b"".join(msgspec.json.encode(record) + b"\n" for record in records))


def _append(run: RunDirectory, content: bytes) -> None:
    with (run.journal / "parent.jsonl").open("ab") as journal:
        journal.write(content)
