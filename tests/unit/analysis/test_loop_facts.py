"""The training loop as it is written, over launches that never ran: steps wait 60 % and copy 10 % of their time."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from pindiag.analysis import analyse
from pindiag.analysis.loop_facts import NO_ACCELERATOR, NO_CLOCK, NO_CONTEXT, NO_LOOP, NOT_MADE_OUT, NOT_NOTED
from pindiag.model import Block, ClockSeen, ContextsSeen, LoaderChosen, SyncSite, TrainingLoop
from pindiag.plan.schedule import next_order

TRAIN = "/home/ann/train.py"
COPY, ITEM = 23, 30
"""Lines of the copy and of the call that waits in the pretended blocks."""


def clock(started, read, wait_is_timed=False):
    return ClockSeen(started=started, read=read, wait_is_timed=wait_is_timed)


def loop(*clocks, rebuilt=False, location=f"{TRAIN}:20", last_line=40):
    return partial(TrainingLoop, location=location, last_line=last_line, clocks=list(clocks), rebuilt=rebuilt)


def context(worker, *devices, pid=4001):
    return partial(ContextsSeen, pid=pid, worker=worker, devices=list(devices))


@pytest.fixture
def analysed(script, spec, loader_arguments):
    """A run whose first launch left some more records."""

    def run(*more, accelerator="cuda", syncs=None, persistent=False, **chosen):
        fake = script(detailed=True, accelerator=accelerator, baseline=loader_arguments(persistent_workers=persistent))
        fake.machine()
        fake.play(partial(next_order, spec()))
        records = []
        for record in fake.records:
            at = {"launch": record.launch, "t_ns": record.t_ns}
            if isinstance(record, Block) and syncs is not None:
                record = msgspec.structs.replace(record, syncs=syncs(record))
            if isinstance(record, LoaderChosen):
                records += [make(**at) for make in more if record.launch == 1]
                record = msgspec.structs.replace(record, **chosen)
            records.append(record)
        return analyse(spec(), records, fake.batches, {}, {})

    return run


@pytest.fixture
def found(analysed):
    """Its facts, those of the script as written."""

    def run(*more, **changes):
        told = analysed(*more, **changes)
        return {fact.name: fact for fact in told.facts if fact.trial in (None, told.baseline)}

    return run


def waiting(kind, ms, calls=1.0, line=ITEM):
    """Calls of one place that wait for the device, in milliseconds and calls a step."""

    def syncs(block):
        calls_made, took = round(calls * block.steps), ms * block.steps
        return [SyncSite(location=f"{TRAIN}:{line}", kind=kind, calls=calls_made, ms=took)]

    return syncs


def test_a_clock_that_starts_when_the_batch_is_there_leaves_out_the_wait(found):
    facts = found(loop(clock(22, 31)))
    assert facts["clock_place"].value == f"{TRAIN}:22"
    assert facts["clock_left_out_share"].value == pytest.approx(0.6)
    assert facts["clock_left_out_wait_ms"].value == pytest.approx(facts["wait_ms"].value)
    assert facts["clock_left_out_elsewhere_ms"].value == 0


def test_one_that_starts_after_the_copy_leaves_that_out_too(found):
    facts = found(loop(clock(24, 31)))
    assert facts["clock_left_out_share"].value == pytest.approx(0.7)
    assert facts["clock_left_out_share"].source == f"the clock of lines 24 to 31; {TRAIN}:{COPY}"


def test_a_wait_that_another_clock_times_is_not_left_out(found):
    assert found(loop(clock(22, 31, wait_is_timed=True)))["clock_left_out_share"].value == 0


def test_waiting_for_the_gpu_after_the_clock_is_left_out(found):
    facts = found(loop(clock(22, 29, wait_is_timed=True)), syncs=waiting("item", 2.0))
    assert facts["clock_left_out_elsewhere_ms"].value == pytest.approx(2.0)
    assert facts["clock_synchronisations_per_step"].value == 0


def test_what_is_not_in_the_loop_is_none_of_its_step(found):
    facts = found(loop(clock(22, 29, wait_is_timed=True)), syncs=waiting("item", 2.0, line=60))
    assert facts["clock_left_out_elsewhere_ms"].value == 0


def test_the_clock_that_leaves_out_most_is_told(found):
    assert found(loop(clock(22, 31, wait_is_timed=True), clock(24, 31)))["clock_place"].value == f"{TRAIN}:24"


def test_a_loop_that_waits_for_the_gpu_to_read_its_clock(found):
    fact = found(loop(clock(22, 31)), syncs=waiting("torch.cuda.synchronize", 2.0, calls=2))[
        "clock_synchronisations_per_step"
    ]
    assert (fact.value, fact.source) == (2, f"{TRAIN}:{ITEM}")


def test_no_clock_and_no_loop(found):
    assert found(loop())["clock_left_out_share"].reason == NO_CLOCK
    assert found()["clock_left_out_share"].reason == NO_LOOP


def test_a_loader_that_is_made_anew(found):
    facts = found(loop(rebuilt=True))
    assert (facts["loader_rebuilt"].value, facts["loader_rebuilt"].source) == (True, f"the one at {TRAIN}:20")
    running_s = 313 * 64 / facts["samples_per_second"].value
    start_s = facts["startup_s"].value - (facts["worker_fetch_ms"].value + facts["worker_collate_ms"].value) / 1e3
    assert 0 < start_s < facts["startup_s"].value
    assert facts["loader_startup_share"].value == pytest.approx(start_s / (start_s + running_s))


def test_where_it_is_made_is_not_known(found):
    assert found(loop(rebuilt=None))["loader_rebuilt"].reason == NOT_MADE_OUT
    assert found()["loader_rebuilt"].reason == NO_LOOP


def test_no_share_of_an_epoch_without_its_length(found):
    assert found(batches_per_epoch=None)["loader_startup_share"].value is None


def test_whether_the_dataset_gives_whole_batches(found):
    assert found(fetches_batches=True)["dataset_fetches_batches"].value is True
    assert found()["dataset_fetches_batches"].reason == NOT_NOTED


def test_workers_with_contexts_are_counted_once(found):
    facts = found(context(None, 0), context(0, 0, pid=1), context(1, 0, pid=2), context(1, 0, pid=2))
    assert (facts["worker_contexts"].value, facts["worker_contexts"].source) == (2, "workers of launch 1")
    assert facts["other_gpu_contexts"].value == 0


def test_contexts_beside_the_gpu_that_trains(found):
    facts = found(context(None, 0, 1, 3), device="cuda:1")
    assert (facts["other_gpu_contexts"].value, facts["other_gpu_contexts"].source) == (2, "cuda:0, cuda:3")
    assert facts["worker_contexts"].value == 0


def test_why_no_contexts_are_known(found):
    assert found()["worker_contexts"].reason == NO_CONTEXT
    assert found(accelerator=None)["other_gpu_contexts"].reason == NO_ACCELERATOR


@pytest.mark.parametrize(("rebuilt", "starts"), [(True, True), (False, False), (None, False)])
def test_workers_do_not_persist_in_a_loader_that_is_made_anew(analysed, rebuilt, starts):
    trial = analysed(loop(rebuilt=rebuilt), persistent=True).trials[0]
    running_s = 313 * 64 / trial.samples_per_second.median
    assert trial.epoch_s == pytest.approx(running_s + (trial.startup_s if starts else 0))
