"""PD125 worker_crash."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Statement, rule

NATIVE = ("SIGSEGV", "SIGABRT", "SIGILL", "SIGFPE")
CRASHES = ("worker_died", "pin_thread_died")
MORE_SHM = (
    "Give /dev/shm more room (docker run --shm-size=1g or --ipc=host), or let fewer batches wait: fewer workers, a "
    "smaller prefetch_factor."
)
LESS_MEMORY = (
    "Use fewer workers or a smaller prefetch_factor, hold the dataset in one array instead of lists of Python objects, "
    "or raise the memory limit."
)
IN_THE_MAIN_PROCESS = (
    "Run it with num_workers=0 under `python -X faulthandler`: the crash then names the line of Python that called the "
    "native code. If it does not crash there, try multiprocessing_context='spawn'."
)


@rule(
    "PD125",
    "worker_crash",
    title="A worker of the loader dies under the script's own configuration",
    limit="A worker that dies",
    options={"shm_share": 0.8},
    of_fact=True,
)
def worker_crash(facts: Facts, options: Options) -> Statement:
    """The script stopped because a process or thread of its own loader died, before or while it was measured.

    What it means:
        A worker that is killed takes the training process down with an error that tells little: torch names a signal,
        or a broken connection. Speed is the second question.

    How it is decided:
        By its fact: a launch of the script as written gave nothing and ended because a worker, or the pin thread, was
        gone. What it died of is told by the signal and never beyond what was seen with it. SIGBUS: /dev/shm was full
        where at least `shm_share` of it was in use (0.8: samples are taken five times a second and miss the last
        writes), or as much was to wait in the queue. SIGKILL: for want of memory where the kernel counted such a kill,
        or nearly nothing was left. SIGSEGV, SIGABRT, SIGILL, SIGFPE: native code, whose name no signal tells. A worker
        that dies under another configuration only is that configuration's failure, not the script's. It is suspected
        where one died under the script's own after something had been measured.

    Example:
        before: `DataLoader worker (pid 71) is killed by signal: Segmentation fault` at step 43.
        after: the record that makes the decoder crash is left out: `num_workers=0` under `python -X faulthandler` names
        its line.

    Fix:
        SIGBUS: more room in /dev/shm. SIGKILL for want of memory: fewer workers, or a dataset that forked workers do
        not copy. Native code: the item that crashes, found with `num_workers=0` under `python -X faulthandler`.

    When to ignore:
        Never.

    References:
        pytorch/pytorch#5040, pytorch/pytorch#13246, pytorch/pytorch#41197, pytorch/pytorch#54752,
        pytorch/pytorch#40403, KatherLab/MediSwarm#574.
    """
    if not crashed(facts):
        return _not_by_itself(facts)
    said, remedy = _told(facts, options)
    return Statement(
        status="confirmed",
        severity="high",
        explanation=said,
        evidence=facts.evidence(
            "worker_death",
            "out_of_memory_evidence",
            "shm_used_at_failure_bytes",
            "shm_bytes",
            "loader_queue_bytes",
            "start_method",
            "main_threads_at_worker_start",
        ),
        remedy_summary=remedy,
    )


def _not_by_itself(facts: Facts) -> Statement:
    times = facts.get("worker_deaths_as_written")
    if times is None:
        said = "No worker of the script as written died."
        return Statement(status="ruled_out", explanation=said, evidence=facts.evidence("target_status"))
    return Statement(
        status="suspected",
        severity="medium",
        explanation=(
            f"In {figures.count(times)} launch{'' if times == 1 else 'es'} a worker died while the script's own "
            "configuration ran, after something had been measured; other treatments may have run before in it."
        ),
        evidence=facts.evidence("worker_deaths_as_written"),
        settled_by="the script by itself, until its first epoch is over",
    )


def crashed(facts: Facts) -> bool:
    """Whether the script as written stopped because something of its loader died."""
    return facts.inputs.target.status == "failed" and facts.text("target_failure") in CRASHES


def shm_was_full(facts: Facts, share: float) -> bool:
    """Whether /dev/shm was in use, or was to be filled, to this share when a worker died."""
    size = facts.get("shm_bytes")
    asked = [facts.get("shm_used_at_failure_bytes"), facts.get("loader_queue_bytes")]
    return bool(size) and any(used is not None and used >= share * (size or 0.0) for used in asked)


def _told(facts: Facts, options: Options) -> tuple[str, str]:
    """What is known of the death, and what to do about it."""
    if facts.text("target_failure") == "pin_thread_died":
        said = "The thread that pins batches ended by an exception of its own; target.log has it."
        return said, "See target.log; without pin_memory there is no such thread."
    death = facts.text("worker_death")
    if death == "SIGBUS":
        return _of_bus_error(facts, options)
    if death == "SIGKILL":
        return _of_kill(facts)
    if death in NATIVE:
        return f"A worker died of {death}, so native code in it broke.{_forked(facts)}", IN_THE_MAIN_PROCESS
    if death is None:
        said = "A worker was gone, and nobody knows of what it died."
        return said, "See target.log and the kernel's log; run it with num_workers=0."
    if death.startswith("exit status"):
        return f"A worker ended by itself with {death}.", "See target.log for what it printed before."
    return f"A worker was killed by {death}, which pindiag did not send.", "Find out who sends that signal."


def _of_bus_error(facts: Facts, options: Options) -> tuple[str, str]:
    used, size = facts.get("shm_used_at_failure_bytes"), facts.get("shm_bytes")
    seen = ""
    if used is not None and size is not None:
        seen = f" At most {figures.byte_size(used)} of its {figures.byte_size(size)} were seen in use."
    if shm_was_full(facts, options["shm_share"]):
        return f"A worker died of a bus error (SIGBUS), as it does when /dev/shm is full.{seen}", MORE_SHM
    said = (
        "A worker died of a bus error (SIGBUS). That happens when a file that is mapped is cut short, and when "
        f"/dev/shm is full, which it was not seen to be.{seen}"
    )
    return said, "Look for mapped files that change while they are read; watch /dev/shm while it runs."


def _of_kill(facts: Facts) -> tuple[str, str]:
    memory = facts.text("out_of_memory_evidence")
    if memory is not None:
        return f"A worker was killed (SIGKILL) for want of memory: {memory}.", LESS_MEMORY
    said = (
        "A worker was killed (SIGKILL). pindiag did not do it, and no kill for want of memory was seen: a limit of a "
        "batch system, or a person, may have."
    )
    return said, "See the kernel's log and that of the batch system."


def _forked(facts: Facts) -> str:
    threads = facts.get("main_threads_at_worker_start")
    if facts.text("start_method") != "fork" or threads is None or threads < 2:
        return " What it was is not shown."
    return (
        f" It was forked from a process with {figures.count(threads)} threads, of which a fork takes over one: "
        "libraries that had used the others (OpenMP, OpenCV, CUDA) may break in it. That this is why is not shown."
    )
