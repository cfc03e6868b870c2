"""How the script fared under its own configuration, and what a worker of it died of."""

from __future__ import annotations

from collections.abc import Iterator

from pindiag.analysis.evidence import NO_LOADER, NO_WORKERS, RunEvidence
from pindiag.analysis.fact import fact
from pindiag.journal import Launch
from pindiag.model import Fact, LaunchEnded, LoaderIterated, Sample, TargetFailed

NO_FAILURE = "no launch of the script as written failed"
NO_DEATH = "no worker of the script as written died"
NOT_SAMPLED = "no sample of it was taken"


def failed_launch(run: RunEvidence) -> Launch | None:
    """The last launch that shows the script to fail under its own configuration; None: it does not.

    It fails when a launch as written gave nothing: the first, or two of them where others went well. What another
    treatment's block ended in a live launch is that treatment's failure.
    """
    own = launches_as_written(run)
    broken = [launch for launch in own if _broken(launch)]
    enough = len(broken) > (1 if any(launch.measured for launch in own) else 0)
    return broken[-1] if enough else None


def launches_as_written(run: RunEvidence) -> list[Launch]:
    """Those in which what ran last was the script's own configuration."""
    return [launch for launch in run.journal.launches if _as_written(launch)]


def _as_written(launch: Launch) -> bool:
    pending = launch.unfinished
    treatment = launch.treatment if pending is None else launch.trial_of(pending)
    return treatment is None or (treatment.kind == "configuration" and not treatment.changes)


def _broken(launch: Launch) -> bool:
    ended = launch.ended
    return not launch.measured and not launch.past_natural_end and ended is not None and ended.status == "failed"


def of_failures(run: RunEvidence) -> Iterator[Fact]:
    """What is known of a failure under the script's own configuration, and of workers that could not be pickled."""
    launch = failed_launch(run)
    ended = None if launch is None else launch.ended
    source = "launches of the script as written" if launch is None else f"the end of launch {launch.id}"
    kind = None if ended is None else ended.failure
    died = kind == "worker_died"
    unknown = NO_FAILURE if launch is None else "it is of no kind that is known by name, or was not told apart"
    yield fact("target_failure", kind, None, source, unknown)
    death = None if ended is None else ended.worker_death
    yield fact("worker_death", death, None, source, "nobody knows of what it died" if died else NO_DEATH)
    memory = None if ended is None else ended.out_of_memory
    yield fact("out_of_memory_evidence", memory, None, source, "none was seen" if launch is not None else NO_FAILURE)
    pinning = launch is not None and kind == "memory" and _pinned(launch)
    reason = NO_FAILURE if launch is None else "it did not run out of memory while a batch was pinned"
    yield fact("failed_while_pinning", pinning or None, None, f"the exception of {source}", reason)
    yield _deaths_as_written(run)
    yield _shm_used(launch)
    yield _threads_at_start(launch)
    yield _queue(run)
    yield _unpicklable(run)


def _pinned(launch: Launch) -> bool:
    """Whether what a launch raised came from pinning: in the pin thread, or in the main thread where there is none."""
    failed = launch.first(TargetFailed)
    return failed is not None and ("pin memory thread" in failed.message or "in pin_memory" in failed.traceback)


def _deaths_as_written(run: RunEvidence) -> Fact:
    """Launches in which a worker died while the script's own configuration was served, whatever had run before."""
    ends = [launch.ended for launch in run.journal.launches]
    died = [ended for ended in ends if ended is not None and ended.failure == "worker_died"]
    own = [str(ended.launch) for ended in died if ended.under is not None and ended.under == run.journal.baseline]
    source = f"the ends of launches {', '.join(own)}" if own else "the ends of launches"
    return fact("worker_deaths_as_written", len(own) or None, "launches", source, NO_DEATH)


def _shm_used(launch: Launch | None) -> Fact:
    """Most of /dev/shm that was seen in use in the launch that failed."""
    used = [] if launch is None else [sample.shm_used_bytes for sample in launch.all(Sample)]
    most = max((bytes_used for bytes_used in used if bytes_used is not None), default=None)
    source = "no launch" if launch is None else f"sampler, launch {launch.id}"
    return fact("shm_used_at_failure_bytes", most, "B", source, NO_FAILURE if launch is None else NOT_SAMPLED)


def _threads_at_start(launch: Launch | None) -> Fact:
    """Threads of the main process when the workers of the failed launch were started for the last time."""
    born = None if launch is None else next(reversed(launch.worker_starts), None)
    count = None if launch is None or born is None else _main_threads(launch, _began_ns(born))
    source = "no launch" if launch is None else f"sampler, launch {launch.id}, before its workers were started"
    reason = NO_FAILURE if launch is None else NOT_SAMPLED
    return fact("main_threads_at_worker_start", count, "threads", source, reason)


def _began_ns(born: LoaderIterated) -> int:
    return born.t_ns - round((born.first_batch_ms or born.startup_ms) * 1e6)


def _main_threads(launch: Launch, before_ns: int) -> int | None:
    earlier = [sample for sample in launch.all(Sample) if sample.t_ns <= before_ns]
    last = earlier[-1].processes if earlier else []
    return next((process.threads for process in last if process.role == "main"), None)


def _queue(run: RunEvidence) -> Fact:
    """Batches that the workers of the script as written may have in flight, as they lie in shared memory."""
    found = run.found
    own = None if found is None else found.configuration
    batches = None if own is None else own.num_workers * (own.prefetch_factor or 2) or None
    size = None if found is None or batches is None else batches * found.batch_bytes
    reason = NO_LOADER if found is None else NO_WORKERS
    return fact("loader_queue_bytes", size, "B", "workers × prefetch_factor × batch, as written", reason)


def _unpicklable(run: RunEvidence) -> Fact:
    """The reason of a launch whose workers could not be pickled, whatever it ran under."""
    ends = [launch.ended for launch in run.journal.launches]
    found = next((ended for ended in ends if ended is not None and ended.failure == "unpicklable"), None)
    source = "launches" if found is None else f"the end of launch {found.launch}"
    return fact("unpicklable", _reason(found), None, source, "no launch ended for it")


def _reason(ended: LaunchEnded | None) -> str | None:
    return None if ended is None else ended.reason
