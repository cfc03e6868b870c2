"""Speaks the probe's side of the protocol without torch; what it does besides is told by its arguments."""

import json
import os
import signal
import subprocess
import sys
import time

with open(sys.argv[1]) as file:
    SPEC = json.load(file)
PATH = os.path.join(SPEC["run_directory"], "journal", f"launch-{SPEC['launch']:03d}-{os.getpid()}.jsonl")
JOURNAL = open(PATH, "ab", buffering=0)
ANSWERS = os.fdopen(SPEC["pipe_read_fd"], "r")
BLOCK = next(iter(SPEC["blocks"]), None)
READY = os.pipe()
CONFIGURATION = {
    "num_workers": 2,
    "pin_memory": False,
    "non_blocking": None,
    "prefetch_factor": 2,
    "persistent_workers": False,
    "batch_size": 8,
}


def tell(kind, *, pipe=True, **fields):
    record = {"type": kind, "launch": SPEC["launch"], "t_ns": time.monotonic_ns(), **fields}
    line = json.dumps(record).encode() + b"\n"
    JOURNAL.write(line)
    if pipe:
        os.write(SPEC["pipe_write_fd"], line)


def phase(order, name):
    tell("block_phase", block=order["block"], trial=order["trial"], phase=name)


def fork(work):
    pid = os.fork()
    if pid == 0:
        with open("/proc/self/comm", "w") as name:
            name.write("pt_data_worker")
        work()
        os._exit(0)
    return pid


def sleep_on():
    while True:
        time.sleep(8)


def spin():
    os.write(READY[1], b".")
    while True:
        pass


def hold():
    held = bytearray(300 << 20)
    held[::4096] = b"x" * len(held[::4096])
    os.write(READY[1], b".")
    while held:
        time.sleep(8)


def measure(order, seconds=0.1, status="counted", reason=None):
    """Run a block; what the parent answers, None where it is not asked."""
    phase(order, "settling")
    phase(order, "counting")
    time.sleep(seconds)
    phase(order, "counted")
    tell_block(order, seconds, status, reason)
    return None if reason is not None else json.loads(ANSWERS.readline() or '{"then": "stop"}')


def tell_block(order, seconds, status, reason):
    tell(
        "block",
        block=order["block"],
        trial=order["trial"],
        round=order["round"],
        settle_steps=1,
        steps=10,
        samples=80,
        started_ns=time.monotonic_ns() - int(seconds * 1e9),
        ended_ns=time.monotonic_ns(),
        seconds=seconds,
        gap_s=0.0,
        status=status,
        reason=reason,
        wait_ms=1.0,
        wait_cpu_ms=1.0,
        transfer_ms=0.0,
        synchronise_ms=0.0,
        optimizer_ms=0.0,
        main_cpu_ms=1.0,
        step_ms=[],
        step_wait_ms=[],
        transfers=[],
        syncs=[],
        pin_thread=None,
        host_allocator=None,
        missing={},
        probe_us_per_step=1.0,
    )


def count(seconds=0.1, status="counted", reason=None):
    tell("first_step")
    answer = measure(BLOCK, seconds, status, reason)
    return None if answer is None else answer["then"]


def end(how="stopped", status=0):
    tell("target_ended", how=how, status=status, steps=10, epochs=None)
    sys.exit(status)


def ordinary():
    fork(sleep_on)
    print("hello from the target", flush=True)
    then = count()
    tell("unmeasured", pipe=False, key="answer", reason=then)
    end()


TIDIER = """
import os, sys, time
parent = os.getppid()
while os.getppid() == parent:
    time.sleep(0.02)
time.sleep(0.3)
open("tidied", "w").close()
"""


def has_tidier():
    subprocess.Popen([sys.executable, "-c", TIDIER, "torch_shm_manager"])
    fork(sleep_on)
    count()
    sleep_on()


def tells_environment():
    seen = {
        **os.environ,
        "cwd": os.getcwd(),
        "leads": [os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid()],
        "stdin": sys.stdin.read(),
        "pipes": [SPEC["pipe_read_fd"], SPEC["pipe_write_fd"], JOURNAL.fileno(), *READY],
        "fds": [int(fd) for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")],
    }
    tell("unmeasured", pipe=False, key="environment", reason=json.dumps(seen))
    end("finished")


def choose():
    """Find a loader whose batches are as large as the second argument says."""
    tell(
        "loader_chosen",
        loader=0,
        key={"location": "/train.py:7", "ordinal": 1},
        why="the only one",
        others=[],
        configuration=CONFIGURATION,
        batches_per_epoch=10,
        dataset_samples=80,
        batch_samples=8,
        sample_bytes=1,
        batch_bytes=int(SPEC["args"][1]),
        tensors=1,
        iterable=False,
        dataset_class="Data",
        start_method="fork",
        accelerator=None,
        device=None,
        device_name=None,
        intraop_threads=1,
    )


def chooses():
    """Later launches get the loader's key."""
    tell("unmeasured", pipe=False, key="loader", reason=json.dumps(SPEC["loader"]))
    choose()
    count()
    end()


def scouts():
    choose()
    tell("first_step")
    end()


def scout_stays():
    choose()
    tell("first_step")
    sleep_on()


def scout_dies():
    choose()
    kills_itself()


def applied(order):
    trial = order["trial"]
    tell("treatment_applied", pipe=False, trial=trial, applied={}, refused={}, how="cloned at iteration")


def fail(order):
    tell("target_failed", exception="ValueError", message="planted", traceback="", step=30, past_natural_end=False)
    tell_block(order, 0.1, "failed", "ValueError: planted")
    end("failed", 1)


def stop_short(order):
    measure(order, status="short", reason="the script ended")
    end("finished")


def live(third=None, seconds=0.1):
    """Blocks with a worker each, as long as more are ordered; the third one may go its own way."""
    choose()
    tell("first_step")
    orders, ran, worker = list(SPEC["blocks"]), 0, None
    while orders:
        order, ran = orders.pop(0), ran + 1
        applied(order)
        if worker is not None:
            os.kill(worker, signal.SIGKILL)
            os.waitpid(worker, 0)
        worker = fork(lambda: (os.write(READY[1], b"."), sleep_on()))
        os.read(READY[0], 1)
        if ran == 3 and third is not None:
            phase(order, "settling")
            third(order)
        answer = measure(order, seconds)
        orders += answer["blocks"]
        for window in answer["windows"]:
            tell("window", trial=window["trial"], steps=10, trace=None, reason="planted", seconds=0.1)
        if answer["then"] != "blocks":
            end()


def live_hangs():
    live(lambda _: sleep_on())


def live_is_killed():
    live(lambda _: os.kill(os.getpid(), signal.SIGKILL))


def live_has_a_bus_error():
    live(lambda _: os.kill(os.getpid(), signal.SIGBUS))


def live_raises():
    live(fail)


def live_ends_early():
    live(stop_short)


def leaves_setsid_workers():
    for work in (sleep_on, lambda: (os.setsid(), sleep_on())):
        fork(work)
    fork(lambda: (os.setsid(), os.fork(), sleep_on()))
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    count()
    end()


def sleeping_workers():
    for _ in range(2):
        fork(sleep_on)
    fork(lambda: (os.setsid(), sleep_on()))
    tell("first_step")
    sleep_on()


def raises():
    tell(
        "target_failed",
        exception="ValueError",
        message="planted",
        traceback="Traceback ...\nValueError: planted\n",
        step=3,
        past_natural_end=False,
    )
    count(status="failed", reason="ValueError: planted")
    end("failed", 1)


def ends_early():
    count(status="short", reason="the script ended")
    end("finished", 0)


def worker_dies():
    worker = fork(sleep_on)
    tell("first_step")
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
    tell(
        "target_failed",
        exception="RuntimeError",
        message=f"DataLoader worker (pid {worker}) is killed by signal: Killed. ",
        traceback="",
        step=3,
        past_natural_end=False,
    )
    end("failed", 1)


def never_steps():
    sleep_on()


def hangs_after_step():
    tell("first_step")
    sleep_on()


def ignores_stop():
    count()
    sleep_on()


def closes_pipe():
    os.close(SPEC["pipe_write_fd"])
    time.sleep(0.3)
    sys.exit(7)


def planted():
    fork(hold)
    fork(spin)
    for _ in range(2):
        os.read(READY[0], 1)
    count(2.0)
    end()


def kills_itself():
    os.kill(os.getpid(), signal.SIGKILL)


def writes_on():
    tell("first_step")
    while True:
        tell("first_step")
        time.sleep(0.01)


{name: value for name, value in globals().items() if callable(value)}[SPEC["args"][0]]()
