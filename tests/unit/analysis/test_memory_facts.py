"""How workers' memory grows, what their dataset holds, and how evenly the script waits."""

from __future__ import annotations

from functools import partial

import pytest
from msgspec.structs import replace

from pindiag.analysis import analyse
from pindiag.model import Block, HandlesOpen, LoaderChosen, MemoryRead, PythonObjects
from pindiag.plan.schedule import next_order

PER_BATCH = 4096
OBJECTS = [
    PythonObjects(place="dataset.texts", kind="list", items=20_000, of="str"),
    PythonObjects(place="dataset.rows", kind="list", items=300_000, of="dict"),
]


@pytest.fixture
def found(script, spec):
    """Facts of a sweep by name and trial, with more records beside each of its own."""

    def run(beside=lambda _: [], altered=lambda record: record):
        fake = script(detailed=True)
        fake.machine()
        fake.play(partial(next_order, spec()))
        records = [more for each in fake.records for more in (altered(each), *beside(each))]
        return {(fact.name, fact.trial): fact for fact in analyse(spec(), records, fake.batches, {}, {}).facts}

    return run


class Grown:
    """Adds what would have been read when a block began to what was read at its end: less memory, fewer batches."""

    def __init__(self):
        self.batches = 0

    def __call__(self, record):
        if isinstance(record, Block):
            self.batches = record.settle_steps + record.steps
        if not isinstance(record, MemoryRead):
            return []
        own, shared = PER_BATCH * self.batches, 1 << 20
        workers, shm = record.worker_pss_bytes - own - shared, record.shm_bytes - shared
        return [replace(record, phase="settling", worker_pss_bytes=workers, shm_bytes=shm)]


def test_growth_with_each_batch(found):
    assert found(Grown())["worker_growth_bytes_per_batch", "nw4-pin0"].value == pytest.approx(PER_BATCH)


def test_what_was_read_once_tells_no_growth(found):
    fact = found()["worker_growth_bytes_per_batch", "nw4-pin0"]
    assert fact.value is None
    assert fact.reason == "the workers' memory was not read at both ends of a block"


def test_without_workers_nothing_grows(found):
    assert found(Grown())["worker_growth_bytes_per_batch", "nw0-pin0"].reason == "no workers under this configuration"


def test_the_reading_at_the_begin_is_no_level(found):
    """It would pull down what is said of memory under a configuration."""
    low = {"worker_pss_bytes": 1, "phase": "settling"}
    beside = [lambda _: [], lambda record: [replace(record, **low)] if isinstance(record, MemoryRead) else []]
    levels = [found(each)["worker_pss_bytes", "nw4-pin0"].value for each in beside]
    assert levels[0] == levels[1]


def seen(record, **changes):
    if not isinstance(record, LoaderChosen):
        return []
    given = {"objects": OBJECTS, "collate_place": "/home/x/train.py:30", **changes}
    return [HandlesOpen(launch=record.launch, t_ns=record.t_ns, loader=record.loader, handles=[], **given)]


def test_what_the_dataset_holds(found):
    facts = found(seen)
    assert facts["dataset_objects", None].value == 320_000
    assert facts["dataset_objects", None].source == "dataset.rows, a list of dict"
    assert facts["collate_place", None].value == "/home/x/train.py:30"


def test_what_was_not_looked_for_has_its_reason(found):
    facts = found(partial(seen, objects=None, collate_place=None))
    assert facts["dataset_objects", None].reason == "recorded before it was looked for"
    assert facts["collate_place", None].reason == "recorded before it was looked for"
    assert found(partial(seen, collate_place=None))["collate_place", None].reason == "it is not the script's own"


def waiting(waits):
    return lambda record: replace(record, step_wait_ms=waits) if isinstance(record, Block) else record


@pytest.mark.parametrize(
    ("waits", "share"),
    [([2.0] * 40, 0.1), ([0.0] * 36 + [9.0] * 4, 1.0), ([1.0] * 18 + [9.0] * 2, 0.5)],
)
def test_waiting_of_the_longest_tenth(found, waits, share):
    facts = found(altered=waiting(waits))
    assert facts["wait_longest_tenth_share", "nw4-pin0"].value == pytest.approx(share)


def test_without_any_waiting_it_is_not_known(found):
    assert found(altered=waiting([0.0] * 40))["wait_longest_tenth_share", "nw4-pin0"].reason == "it did not wait"


def test_few_steps_tell_nothing(found):
    fact = found(altered=waiting([5.0]))["wait_longest_tenth_share", "nw4-pin0"]
    assert fact.reason == "fewer than 20 counted steps"
