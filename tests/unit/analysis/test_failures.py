"""What is told of a script that fails by itself, over launches that never ran."""

from __future__ import annotations

import msgspec
import pytest

from pindiag.analysis import analyse
from pindiag.model import Block, LaunchEnded, LoaderChosen, LoaderIterated, Process, RunEnded, Sample, TargetFailed
from pindiag.plan.schedule import next_order

WORKER = {"failure": "worker_died", "worker_death": "SIGSEGV", "reason": "a worker was killed"}


def sample(t_ns, threads, shm_used):
    processes = [Process(**{**dict.fromkeys(Process.__struct_fields__), "pid": 1, "role": "main", "threads": threads})]
    known = {"launch": 1, "rank": 0, "t_ns": t_ns, "processes": processes, "sampler_cpu_s": 0.0}
    return Sample(**{**dict.fromkeys(Sample.__struct_fields__), **known, "shm_used_bytes": shm_used})


@pytest.fixture
def failing(script, spec, loader_arguments):
    """The analysis of a run whose only launch ended as told, after its blocks if some of it was measured."""

    def run(*, measured=False, own=True, threads=None, shm_used=None, raised=(), **ended):
        fake = script(baseline=loader_arguments())
        fake.machine()
        fake.run(next_order(spec(), fake.records))
        over = next(record for record in fake.records if isinstance(record, LaunchEnded))
        chosen = next(record for record in fake.records if isinstance(record, LoaderChosen))
        at = {"launch": 1, "t_ns": over.t_ns - 1}
        told = {"exception": "RuntimeError", "message": "x", "traceback": "T: x", "step": 9, "past_natural_end": False}
        fake.records.remove(over)
        if not measured:
            fake.records = [record for record in fake.records if not isinstance(record, Block)]
        births = [record for record in fake.records if isinstance(record, LoaderIterated)]
        earliest_ns = min(born.t_ns - round((born.first_batch_ms or 0) * 1e6) for born in births)
        fake.records = [record for record in fake.records if not isinstance(record, Sample)]
        fake.records += [sample(earliest_ns - 1, threads, shm_used), sample(over.t_ns, 99, None)]
        fake.records.sort(key=lambda record: record.t_ns)
        under = chosen.configuration if own else None
        fake.records += [
            TargetFailed(**at, **(told | dict(raised))),
            msgspec.structs.replace(over, status="failed", exit="exit status 1", under=under, **ended),
            RunEnded(launch=0, t_ns=over.t_ns, status="failed"),
        ]
        found = analyse(spec(), fake.records, fake.batches, {}, {})
        return found, {fact.name: fact for fact in found.facts if fact.trial is None}

    return run


def test_a_worker_that_died(failing):
    found, told = failing(threads=7, shm_used=5_000_000, out_of_memory="nearly nothing was left", **WORKER)
    assert found.target.status == "failed"
    assert (told["target_failure"].value, told["target_failure"].source) == ("worker_died", "the end of launch 1")
    assert told["worker_death"].value == "SIGSEGV"
    assert told["out_of_memory_evidence"].value == "nearly nothing was left"
    assert told["main_threads_at_worker_start"].value == 7
    assert told["shm_used_at_failure_bytes"].value == 5_000_000


def test_one_that_nobody_knows_of(failing):
    _, told = failing(**{**WORKER, "worker_death": None})
    assert (told["worker_death"].value, told["worker_death"].reason) == (None, "nobody knows of what it died")


def test_after_something_was_measured_it_is_not_the_scripts_but_it_is_told(failing):
    found, told = failing(measured=True, **WORKER)
    assert found.target.status != "failed"
    assert told["target_failure"].value is None
    assert (told["worker_deaths_as_written"].value, told["worker_deaths_as_written"].source) == (
        1,
        "the ends of launches 1",
    )


def test_under_something_else_it_is_not_told_of_the_script(failing):
    _, told = failing(measured=True, own=False, **WORKER)
    assert told["worker_deaths_as_written"].value is None


@pytest.mark.parametrize(
    ("raised", "failure", "pinning"),
    [
        ({"message": "Caught RuntimeError in pin memory thread for device 0."}, "memory", True),
        ({"traceback": 'File "pin_memory.py", line 70, in pin_memory\nRuntimeError: out of memory'}, "memory", True),
        ({"message": "CUDA out of memory"}, "memory", None),
        ({"message": "Caught TypeError in pin memory thread for device 0."}, None, None),
    ],
)
def test_memory_that_ran_out_while_a_batch_was_pinned(failing, raised, failure, pinning):
    _, told = failing(raised=raised, failure=failure)
    assert told["failed_while_pinning"].value is pinning


def test_an_exception_of_the_scripts_own_is_of_no_kind(failing):
    _, told = failing()
    assert told["target_failure"].value is None
    assert "of no kind" in told["target_failure"].reason
    assert told["worker_death"].reason == "no worker of the script as written died"
    assert told["unpicklable"].value is None


def test_what_could_not_be_pickled(failing):
    _, told = failing(failure="unpicklable", reason="it cannot be pickled: f")
    assert (told["unpicklable"].value, told["unpicklable"].source) == ("it cannot be pickled: f", "the end of launch 1")


def test_the_queue_as_it_may_lie_in_shared_memory(failing):
    found, told = failing(**WORKER)
    assert told["loader_queue_bytes"].value == 4 * 2 * found.loader.batch_bytes
