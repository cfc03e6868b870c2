"""Says in words how a launch ended and why. Pure."""

from __future__ import annotations

import re
import signal
from typing import Literal

import msgspec

from pindiag.model import Base, TargetEnded, TargetFailed

Status = Literal["ok", "failed", "interrupted"]

_WORKER_KILLED = re.compile(r"DataLoader worker \(pid\(?s?\)? ?[\d, ]+\) (?:is killed by signal: ([^.]*)|exited)")
_UNPICKLABLE = re.compile(r"cannot pickle|can't pickle|Can't get local object|Can't get attribute", re.IGNORECASE)
_MEMORY = re.compile(r"out of memory|can't allocate memory|Cannot allocate memory|MemoryError", re.IGNORECASE)


class Death(Base, frozen=True, kw_only=True):
    """What is known of a launch that is over."""

    returncode: int | None
    """Of the process; negative: the signal that killed it. None: it could not be reaped."""
    interrupted: str | None = None
    """What interrupted the run."""
    overdue: str | None = None
    """Why pindiag killed it."""
    stacks: str | None = None
    """File in the run directory that says what its processes were at."""
    done: bool = False
    """It had measured what it was asked for; at most profiler windows were left."""
    trial: str | None = None
    """What ran in a live launch, or would have been next."""
    failed: TargetFailed | None = None
    ended: TargetEnded | None = None
    no_torch: str | None = None
    out_of_memory: str | None = None
    """Evidence that the machine or the control group was out of memory."""
    shm: str | None = None
    """How large /dev/shm is, and how much of it was used."""


class Ending(Base, frozen=True, kw_only=True):
    """The three fields of `LaunchEnded` that need judgement."""

    status: Status
    exit: str
    reason: str | None = None


def judge(death: Death) -> Ending:
    """Status, exit and reason of a launch.

    The probe tells no failure once it has told the script to stop, so one that it tells is the script's own, also
    after its block.
    """
    ending = _judge(death)
    reason = ending.reason
    if ending.status == "failed" and death.trial is not None:
        reason = f"{reason} (under {death.trial})"
    if death.stacks is not None:
        reason = f"{reason}; its stacks are in {death.stacks}"
    return msgspec.structs.replace(ending, reason=reason)


def _judge(death: Death) -> Ending:
    own_end = death.ended is not None and death.ended.how != "stopped"
    if death.interrupted is not None:
        return Ending(status="interrupted", exit="killed by pindiag", reason=f"the run was {death.interrupted}")
    if death.failed is not None:
        return Ending(status="failed", exit=exit_in_words(death.returncode), reason=_failure(death.failed, death))
    if death.done and not own_end:
        return Ending(status="ok", exit="stopped after the schedule", reason=death.overdue)
    if death.overdue is not None:
        over = death.ended is not None and death.ended.status == 0
        reason = death.overdue if over else f"time-out: {death.overdue}"
        return Ending(status="ok" if over else "failed", exit="killed by pindiag", reason=reason)
    if death.no_torch is not None:
        return Ending(status="failed", exit=exit_in_words(death.returncode), reason=death.no_torch)
    if death.returncode is not None and death.returncode < 0:
        return Ending(
            status="failed", exit=exit_in_words(death.returncode), reason=_killed(_signal(death.returncode), death)
        )
    if death.returncode == 0:
        return Ending(status="ok", exit="exit status 0")
    reason = f"it ended with {exit_in_words(death.returncode)}"
    if death.returncode is None:
        reason = "its process could not be ended: it hangs in the kernel"
    return Ending(status="failed", exit=exit_in_words(death.returncode), reason=reason)


def exit_in_words(returncode: int | None) -> str:
    """How a process ended: "exit status 1", "killed by SIGKILL"."""
    if returncode is None:
        return "not reaped"
    return f"exit status {returncode}" if returncode >= 0 else f"killed by {_signal(returncode)}"


def _signal(returncode: int) -> str:
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"


def _killed(name: str, death: Death) -> str:
    if name == "SIGKILL" and death.out_of_memory is not None:
        return f"out of memory: {death.out_of_memory}"
    if name == "SIGBUS":
        return _bus_error("the target", death)
    return f"the target was killed by {name}, which pindiag did not send"


def _failure(failed: TargetFailed, death: Death) -> str:
    """One sentence for an exception; the causes that concern workers and memory by name."""
    said = f"{failed.exception}: {failed.message}"
    killed = _WORKER_KILLED.search(failed.message)
    if killed is not None:
        return _worker_killed((killed[1] or "").strip(), failed, death)
    if _UNPICKLABLE.search(said):
        return f"it cannot be pickled for a spawned worker: {_line(said)}"
    if _MEMORY.search(said):
        return f"out of memory: {_line(said)}"
    return _line(said)


def _worker_killed(how: str, failed: TargetFailed, death: Death) -> str:
    if how == "Bus error":
        return _bus_error("a worker", death)
    if how == "Killed" and death.out_of_memory is not None:
        return f"out of memory: a worker was killed; {death.out_of_memory}"
    return _line(failed.message)


def _bus_error(who: str, death: Death) -> str:
    shm = f" ({death.shm})" if death.shm else ""
    return f"{who} died of a bus error, as it does when /dev/shm is full{shm}"


def _line(text: str) -> str:
    """The line that says most, short enough for a table: a worker's own error stands last, others stand first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = lines[-1 if "Original Traceback" in text else 0]
    return line if len(line) <= 300 else line[:299] + "…"
