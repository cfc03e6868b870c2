from collections.abc import Sequence

import msgspec
import pytest

from pindiag.launch.ending import Death, judge
from pindiag.model import TargetEnded, TargetFailed

KILLED = "DataLoader worker (pid 71) is killed by signal: Killed. "
BUS = "DataLoader worker (pid 71) is killed by signal: Bus error. It is possible that workers are out of shared memory."
IN_WORKER = (
    "Caught OSError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n  x\nOSError: no x"
)


EXITED = "DataLoader worker (pid(s) 71, 72) exited unexpectedly"
IN_A_FORK = (
    "Caught RuntimeError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n  ...\n"
    "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
    "'spawn' start method"
)
NO_SHM = "unable to allocate shared memory(shm) for file </torch_71_9_0>: No space left on device (28)"


def failed(exception: str, message: str, exits: Sequence[int] = ()) -> TargetFailed:
    return TargetFailed(
        launch=1,
        t_ns=0,
        exception=exception,
        message=message,
        traceback="",
        step=1,
        past_natural_end=False,
        worker_exits=list(exits),
    )


def ended(how: str, status: int) -> TargetEnded:
    return msgspec.convert(
        {"type": "target_ended", "launch": 1, "t_ns": 0, "how": how, "status": status, "steps": 1, "epochs": None},
        TargetEnded,
    )


CASES = {
    "stopped": (
        {"returncode": 0, "done": True},
        ("ok", "stopped after the schedule", None),
    ),
    "stopped, and killed by pindiag": (
        {"returncode": -9, "done": True, "overdue": "it did not end"},
        ("ok", "stopped after the schedule", "it did not end"),
    ),
    "stopped in order": (
        {"returncode": 0, "done": True, "ended": ended("stopped", 0)},
        ("ok", "stopped after the schedule", None),
    ),
    "failed in the profiler window": (
        {"returncode": 1, "done": True, "failed": failed("ValueError", "late"), "ended": ended("failed", 1)},
        ("failed", "exit status 1", "ValueError: late"),
    ),
    "ended in the profiler window": (
        {"returncode": 0, "done": True, "ended": ended("finished", 0)},
        ("ok", "exit status 0", None),
    ),
    "left in the profiler window": (
        {"returncode": 3, "done": True, "ended": ended("exit", 3)},
        ("failed", "exit status 3", "it ended with exit status 3"),
    ),
    "finished, but its process stays": (
        {"returncode": -9, "overdue": "it did not end", "ended": ended("finished", 0)},
        ("ok", "killed by pindiag", "it did not end"),
    ),
    "failed, and its process stays": (
        {"returncode": -9, "overdue": "it did not end", "ended": ended("exit", 4)},
        ("failed", "killed by pindiag", "time-out: it did not end"),
    ),
    "interrupted": (
        {"returncode": -9, "interrupted": "interrupted by Ctrl-C"},
        ("interrupted", "killed by pindiag", "the run was interrupted by Ctrl-C"),
    ),
    "overdue": (
        {"returncode": -9, "overdue": "it made no step"},
        ("failed", "killed by pindiag", "time-out: it made no step"),
    ),
    "ended early": ({"returncode": 0}, ("ok", "exit status 0", None)),
    "exit status": ({"returncode": 3}, ("failed", "exit status 3", "it ended with exit status 3")),
    "exception": (
        {"returncode": 1, "failed": failed("ValueError", "bad\nsecond line")},
        ("failed", "exit status 1", "ValueError: bad"),
    ),
    "exception in a worker": (
        {"returncode": 1, "failed": failed("OSError", IN_WORKER)},
        ("failed", "exit status 1", "OSError: no x"),
    ),
    "exception without a message": (
        {"returncode": 1, "failed": failed("AssertionError", "")},
        ("failed", "exit status 1", "AssertionError:"),
    ),
    "no torch": (
        {"returncode": 2, "no_torch": "there is no torch"},
        ("failed", "exit status 2", "there is no torch"),
    ),
    "killed": (
        {"returncode": -9},
        ("failed", "killed by SIGKILL", "the target was killed by SIGKILL, which pindiag did not send"),
    ),
    "segmentation fault": (
        {"returncode": -11, "out_of_memory": "of old"},
        ("failed", "killed by SIGSEGV", "the target was killed by SIGSEGV, which pindiag did not send"),
    ),
    "out of memory": (
        {"returncode": -9, "out_of_memory": "only 3 MB were left"},
        ("failed", "killed by SIGKILL", "out of memory: the target was killed; only 3 MB were left"),
    ),
    "bus error": (
        {"returncode": -7, "shm": "it holds 64 MB"},
        (
            "failed",
            "killed by SIGBUS",
            "the target died of a bus error, as it does when /dev/shm is full (it holds 64 MB)",
        ),
    ),
    "worker killed": (
        {"returncode": 1, "failed": failed("RuntimeError", KILLED)},
        ("failed", "exit status 1", "a worker was killed by SIGKILL, which pindiag did not send"),
    ),
    "worker out of memory": (
        {"returncode": 1, "failed": failed("RuntimeError", KILLED), "out_of_memory": "the kernel killed it"},
        ("failed", "exit status 1", "out of memory: a worker was killed; the kernel killed it"),
    ),
    "bus error of a worker": (
        {"returncode": 1, "failed": failed("RuntimeError", BUS)},
        (
            "failed",
            "exit status 1",
            "a worker died of a bus error, as it does when /dev/shm is full",
        ),
    ),
    "worker that only its own exit tells of": (
        {"returncode": 1, "failed": failed("RuntimeError", EXITED, [-11])},
        ("failed", "exit status 1", "a worker was killed by SIGSEGV, which pindiag did not send"),
    ),
    "worker seen by a broken connection first": (
        {"returncode": 1, "failed": failed("ConnectionResetError", "reset by peer", [-9]), "out_of_memory": "it said"},
        ("failed", "exit status 1", "out of memory: a worker was killed; it said"),
    ),
    "worker that left": (
        {"returncode": 1, "failed": failed("RuntimeError", EXITED, [3])},
        ("failed", "exit status 1", "a worker ended by itself with exit status 3; target.log may say why"),
    ),
    "worker that nobody knows of": (
        {"returncode": 1, "failed": failed("RuntimeError", EXITED)},
        ("failed", "exit status 1", EXITED),
    ),
    "no shared memory": (
        {"returncode": 1, "failed": failed("RuntimeError", NO_SHM), "shm": "it holds 64 MB"},
        ("failed", "exit status 1", f"out of memory: /dev/shm is full (it holds 64 MB): RuntimeError: {NO_SHM}"),
    ),
    "unpicklable": (
        {"returncode": 1, "failed": failed("AttributeError", "Can't get local object 'main.<locals>.f'")},
        (
            "failed",
            "exit status 1",
            "it cannot be pickled for a spawned worker: AttributeError: Can't get local object 'main.<locals>.f'",
        ),
    ),
    "CUDA in a forked worker": (
        {"returncode": 1, "failed": failed("RuntimeError", IN_A_FORK), "trial": "nw4-pin1"},
        (
            "failed",
            "exit status 1",
            "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must "
            "use the 'spawn' start method (under nw4-pin1)",
        ),
    ),
    "GPU memory": (
        {"returncode": 1, "failed": failed("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2 GiB")},
        ("failed", "exit status 1", "out of memory: OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"),
    ),
    "exception in a block of a live launch": (
        {"returncode": 1, "failed": failed("ValueError", "bad"), "trial": "nw4-pin1"},
        ("failed", "exit status 1", "ValueError: bad (under nw4-pin1)"),
    ),
    "hang in a block of a live launch": (
        {"returncode": -9, "overdue": "it made no progress for 30 s", "trial": "nw4-pin1"},
        ("failed", "killed by pindiag", "time-out: it made no progress for 30 s (under nw4-pin1)"),
    ),
    "hang whose stacks were kept": (
        {"returncode": -9, "overdue": "no step", "trial": "nw4", "stacks": "stacks/launch-003.txt"},
        (
            "failed",
            "killed by pindiag",
            "time-out: no step (under nw4); its stacks are in stacks/launch-003.txt",
        ),
    ),
    "late end whose stacks were kept": (
        {"returncode": -9, "overdue": "it did not end", "done": True, "stacks": "stacks/launch-003.txt"},
        ("ok", "stopped after the schedule", "it did not end; its stacks are in stacks/launch-003.txt"),
    ),
    "live launch that ended early": (
        {"returncode": 0, "ended": ended("finished", 0), "trial": "nw4-pin1"},
        ("ok", "exit status 0", None),
    ),
    "live launch that was stopped": (
        {"returncode": 0, "done": True, "ended": ended("stopped", 0)},
        ("ok", "stopped after the schedule", None),
    ),
    "not reaped": (
        {"returncode": None},
        ("failed", "not reaped", "its process could not be ended: it hangs in the kernel"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_judge(case: str) -> None:
    fields, expected = CASES[case]
    ending = judge(Death(**fields))
    assert (ending.status, ending.exit, ending.reason) == expected


@pytest.mark.parametrize(
    ("exception", "message", "exits", "kind", "death"),
    [
        ("RuntimeError", KILLED, (), "worker_died", "SIGKILL"),
        ("RuntimeError", BUS, (), "worker_died", "SIGBUS"),
        ("ConnectionResetError", "reset by peer", (-11,), "worker_died", "SIGSEGV"),
        ("RuntimeError", EXITED, (3,), "worker_died", "exit status 3"),
        ("RuntimeError", EXITED, (), "worker_died", None),
        ("RuntimeError", "Pin memory thread exited unexpectedly", (), "pin_thread_died", None),
        ("RuntimeError", NO_SHM, (), "shm_full", None),
        ("OSError", "[Errno 24] Too many open files", (), "open_files", None),
        ("RuntimeError", "received 0 items of ancdata", (), "open_files", None),
        ("AttributeError", "Can't get local object 'main.<locals>.f'", (), "unpicklable", None),
        ("MemoryError", "", (), "memory", None),
        ("OSError", IN_WORKER, (), None, None),
    ],
)
def test_kinds_of_failure(
    exception: str, message: str, exits: Sequence[int], kind: str | None, death: str | None
) -> None:
    ending = judge(Death(returncode=1, failed=failed(exception, message, exits)))
    assert (ending.failure, ending.worker_death) == (kind, death)


@pytest.mark.parametrize("returncode", [0, -9, 3, None])
def test_what_raised_nothing_is_of_no_kind(returncode: int | None) -> None:
    assert judge(Death(returncode=returncode)).failure is None


def test_long_messages_are_cut() -> None:
    ending = judge(Death(returncode=1, failed=failed("ValueError", "x" * 1000)))
    assert ending.reason is not None and len(ending.reason) == 300
