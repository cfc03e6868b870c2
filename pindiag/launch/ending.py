"""Says in words how a launch ended and why. Pure."""

from __future__ import annotations

import re
import signal
from typing import Literal

import msgspec

from pindiag.model import Base, Failure, TargetEnded, TargetFailed

Status = Literal["ok", "failed", "interrupted"]

_WORKER_KILLED = re.compile(r"DataLoader worker \(pid\(?s?\)? ?[\d, ]+\) (?:is killed by signal: ([^.]*)|exited)")
_UNPICKLABLE = re.compile(r"cannot pickle|can't pickle|Can't get local object|Can't get attribute", re.IGNORECASE)
_MEMORY = re.compile(r"out of memory|can't allocate memory|Cannot allocate memory|MemoryError", re.IGNORECASE)
_NO_SHM = re.compile(r"shared memory.*(?:No space left on device|Cannot allocate memory)")
_OPEN_FILES = re.compile(r"Too many open files|received 0 items of ancdata", re.IGNORECASE)
_PIN_THREAD = re.compile(r"Pin memory thread exited unexpectedly")
_FOR_MEMORY = "out of memory: "

_NAMED = {signal.strsignal(number): -int(number) for number in signal.valid_signals()}


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
    """The fields of `LaunchEnded` that need judgement."""

    status: Status
    exit: str
    reason: str | None = None
    failure: Failure | None = None
    worker_death: str | None = None


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
        return _raised(death.failed, death)
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


def for_memory(reason: str | None) -> bool:
    """Whether a launch ended for want of memory, /dev/shm's included, by the reason that `judge` gave it."""
    return reason is not None and (reason.startswith(_FOR_MEMORY) or for_shm(reason))


def for_shm(reason: str | None) -> bool:
    """Whether it was /dev/shm that was full."""
    return reason is not None and "/dev/shm is full" in reason


def _signal(returncode: int) -> str:
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"


def _killed(name: str, death: Death) -> str:
    return _died("the target", name, death) or f"the target was killed by {name}, which pindiag did not send"


def _died(who: str, name: str, death: Death) -> str | None:
    """What a signal means that is known for want of memory; None: it says nothing of memory."""
    if name == "SIGKILL" and death.out_of_memory is not None:
        return f"{_FOR_MEMORY}{who} was killed; {death.out_of_memory}"
    if name == "SIGBUS":
        return f"{who} died of a bus error, as it does when /dev/shm is full{_shm(death)}"
    return None


def _raised(failed: TargetFailed, death: Death) -> Ending:
    """One sentence for an exception; the causes that concern workers and memory by name."""
    kind = _kind(failed)
    died = _worker_death(failed) if kind == "worker_died" else None
    return Ending(
        status="failed",
        exit=exit_in_words(death.returncode),
        reason=_failure(kind, died, failed, death),
        failure=kind,
        worker_death=died,
    )


def _kind(failed: TargetFailed) -> Failure | None:
    said = f"{failed.exception}: {failed.message}"
    if _WORKER_KILLED.search(failed.message) is not None or failed.worker_exits:
        return "worker_died"
    told: tuple[tuple[re.Pattern[str], Failure], ...] = (
        (_PIN_THREAD, "pin_thread_died"),
        (_NO_SHM, "shm_full"),
        (_OPEN_FILES, "open_files"),
        (_UNPICKLABLE, "unpicklable"),
        (_MEMORY, "memory"),
    )
    return next((kind for words, kind in told if words.search(said)), None)


def _failure(kind: Failure | None, died: str | None, failed: TargetFailed, death: Death) -> str:
    line = _line(f"{failed.exception}: {failed.message}")
    if kind == "worker_died":
        return _worker_died(died, failed, death)
    before = {
        "shm_full": f"{_FOR_MEMORY}/dev/shm is full{_shm(death)}: ",
        "open_files": "it ran out of file descriptors: ",
        "unpicklable": "it cannot be pickled for a spawned worker: ",
        "memory": _FOR_MEMORY,
    }
    return before.get(kind or "", "") + line


def _worker_death(failed: TargetFailed) -> str | None:
    """What ended a worker: the signal or status that its process tells, or the signal that torch names as strsignal."""
    named = _WORKER_KILLED.search(failed.message)
    status = min(failed.worker_exits, default=_NAMED.get(((named and named[1]) or "").strip(), 0))
    if status == 0:
        return None
    return _signal(status) if status < 0 else f"exit status {status}"


def _worker_died(how: str | None, failed: TargetFailed, death: Death) -> str:
    if how is None:
        return _line(failed.message)
    if how.startswith("exit status"):
        return f"a worker ended by itself with {how}; target.log may say why"
    return _died("a worker", how, death) or f"a worker was killed by {how}, which pindiag did not send"


def _shm(death: Death) -> str:
    return f" ({death.shm})" if death.shm else ""


def _line(text: str) -> str:
    """The line that says most, short enough for a table: a worker's own error stands last, others stand first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = lines[-1 if "Original Traceback" in text else 0]
    return line if len(line) <= 300 else line[:299] + "…"
