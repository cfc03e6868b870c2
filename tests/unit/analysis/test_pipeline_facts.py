"""Facts of workers and of pinning, over launches that never ran."""

from __future__ import annotations

from functools import partial

import pytest
from msgspec.structs import replace

from pindiag.analysis import analyse
from pindiag.analysis.workers import FIRST_FORMAT
from pindiag.model import Block, PinSite
from pindiag.plan.schedule import next_order


@pytest.fixture
def found(script, spec, loader_arguments):
    """Facts and gaps of a sweep by name and trial."""

    def run(pin=False, altered=None, **changes):
        accelerator = "cuda" if pin else None
        baseline = loader_arguments(**({"pin_memory": True, "non_blocking": True} if pin else {}))
        fake = script(detailed=True, accelerator=accelerator, baseline=baseline, **changes)
        fake.machine()
        fake.play(partial(next_order, spec()))
        records = [altered(each) if altered and isinstance(each, Block) else each for each in fake.records]
        analysis = analyse(spec(), records, fake.batches, {}, {})
        facts = {(fact.name, fact.trial): fact for fact in analysis.facts}
        gaps = {gap.key: gap.reason for gap in analysis.not_measured}
        return facts, gaps, analysis

    return run


def test_what_the_rings_tell(found):
    facts, _, analysis = found()
    of = partial(told, facts, "nw4-pin0")
    fetch, collate = of("worker_fetch_ms"), of("worker_collate_ms")
    assert fetch / collate == pytest.approx(2.5)
    assert of("worker_fetch_sample_ms") == pytest.approx(fetch / 64)
    assert of("worker_hand_off_ms") == pytest.approx(fetch / 5)
    assert of("worker_idle_ms") == pytest.approx(fetch * 0.6)
    assert of("worker_sent_bytes") == 900
    assert of("worker_cpus") == pytest.approx(0.4, rel=0.1)
    assert of("worker_threads") == 9
    assert of("worker_start_ms") == 50.0
    assert of("worker_pss_bytes") == 1 << 29
    assert analysis.trials[0].worker_ms.hand_off == of("worker_hand_off_ms")
    assert reason(facts, "nw4-pin0", "worker_minor_faults") == "this platform does not tell it"
    assert reason(facts, "nw4-pin0", "worker_pickle_ms") == "forked workers are not pickled"


def test_without_workers_none_of_it(found):
    facts, _, _ = found()
    names = {name for name, trial in facts if trial == "nw0-pin0" and name.startswith("worker_")}
    assert {
        "worker_hand_off_ms",
        "worker_idle_ms",
        "worker_pickle_ms",
        "worker_threads",
        "worker_cpus",
        "worker_pss_bytes",
    } <= names
    assert {reason(facts, "nw0-pin0", name) for name in names} == {"no workers under this configuration"}


def test_rings_of_the_first_format_say_why_they_do_not_tell(found):
    facts, gaps, _ = found(first_rings=True)
    assert told(facts, "nw4-pin0", "worker_fetch_ms") > 0
    for name in ("worker_hand_off_ms", "worker_idle_ms", "worker_cpus", "worker_run_delay_share"):
        assert reason(facts, "nw4-pin0", name) == FIRST_FORMAT
    assert gaps["trials[0].worker_ms.hand_off"] == gaps["trials[0].worker_ms.idle"] == FIRST_FORMAT


def test_pickling_of_spawned_workers(found):
    facts, _, _ = found(born={"pickle_ms": 800.0, "pickle_bytes": 1 << 20})
    assert told(facts, "nw4-pin0", "worker_pickle_ms") == 800.0
    assert told(facts, "nw4-pin0", "worker_pickle_bytes") == 1 << 20


def test_pinning_is_allocating_and_copying(found):
    facts, _, _ = found(pin=True)
    of = partial(told, facts, "nw4-pin1-nb1")
    assert of("pin_allocate_ms") > 0
    assert of("pin_allocate_ms") + of("pin_copy_ms") == pytest.approx(of("pin_pin_ms"))
    assert of("pinned_active_bytes") + of("pinned_cached_bytes") == of("pinned_reserved_bytes")
    facts, _, _ = found()
    for name in ("pin_allocate_ms", "pin_copy_ms", "pinned_active_bytes", "pinned_cached_bytes", "host_allocations"):
        assert reason(facts, "nw4-pin0", name) == "no CUDA"


def test_a_block_that_allocates_for_longer_than_it_pins_takes_nothing_from_the_others(found):
    """The allocator served someone else in it: what it took there counts up to the pinning of that block alone."""

    def altered(block):
        alone = block.host_allocator is not None and block.round == 1
        return replace(block, host_allocator=replace(block.host_allocator, alloc_ms=1e6)) if alone else block

    facts, _, analysis = found(pin=True, altered=altered)
    own = [block for block in analysis.blocks if block.trial == "nw4-pin1-nb1"]
    allocated_ms = sum(5.0 * block.steps if block.round == 1 else 8.0 for block in own)
    of = partial(told, facts, "nw4-pin1-nb1")
    assert of("pin_allocate_ms") == pytest.approx(allocated_ms / sum(block.steps for block in own))
    assert of("pin_allocate_ms") + of("pin_copy_ms") == pytest.approx(of("pin_pin_ms"))


def test_where_the_script_pins_by_hand_too_nobody_knows_for_whom_was_allocated(found):
    site = PinSite(location="/home/ann/train.py:20", calls=3, bytes=900, ms=2.0)
    facts, _, _ = found(pin=True, altered=lambda block: replace(block, pins=[site]))
    assert "pins by hand as well" in reason(facts, "nw4-pin1-nb1", "pin_allocate_ms")
    assert told(facts, "nw4-pin1-nb1", "host_alloc_ms_per_step") > 0


@pytest.mark.parametrize("pinned", [True, False])
def test_a_batch_that_was_to_be_pinned(found, pinned):
    facts, _, _ = found(pin=True, born={"batch_pinned": pinned})
    assert told(facts, "nw4-pin1-nb1", "batch_pinned") is pinned


def test_a_batch_of_which_nobody_knows_whether_it_was_pinned(found):
    facts, _, _ = found(pin=True)
    assert "no first batch with tensors" in reason(facts, "nw4-pin1-nb1", "batch_pinned")
    facts, _, _ = found()
    assert reason(facts, "nw4-pin0", "batch_pinned") == "nothing is pinned under this configuration"


def told(facts, trial, name):
    assert facts[name, trial].value is not None, facts[name, trial]
    return facts[name, trial].value


def reason(facts, trial, name):
    assert facts[name, trial].value is None
    return facts[name, trial].reason


def test_a_counter_of_live_memory_that_exceeds_what_is_allocated_is_not_believed(found):
    """As torch 2.11 counts it on CUDA."""

    def leaking(block):
        host = block.host_allocator
        return block if host is None else replace(block, host_allocator=replace(host, active_bytes=1 << 40))

    facts, _, _ = found(pin=True, altered=leaking)
    assert told(facts, "nw4-pin1-nb1", "pinned_reserved_bytes")
    for name in ("pinned_active_bytes", "pinned_cached_bytes"):
        assert "does not keep the figure right" in reason(facts, "nw4-pin1-nb1", name)
