from functools import partial

import msgspec
import pytest

from pindiag.analysis import analyse
from pindiag.analysis.recommend import frontier
from pindiag.model import Estimate, MemoryBytes
from pindiag.plan.schedule import next_order


@pytest.fixture
def measured(script, spec):
    fake = script()
    fake.run(next_order(spec(), []))
    (only,) = analyse(spec(), fake.records, [], {}, {}).trials

    def trial(name, rate, pss, pinned=None):
        return msgspec.structs.replace(
            only,
            id=name,
            samples_per_second=Estimate(median=rate, ci95=None),
            memory_bytes=MemoryBytes(pss=pss, pinned=pinned, shm=None),
        )

    return trial


def test_frontier_leaves_out_what_another_beats_in_both(measured):
    trials = [
        measured("fast", 300.0, 90),
        measured("small", 100.0, 10),
        measured("beaten", 99.0, 20),
        measured("pinned", 200.0, 10, pinned=85),
        measured("middle", 200.0, 50),
        measured("unknown", 999.0, None),
    ]
    assert frontier(trials) == ["small", "middle", "fast"]


def test_few_pairs_do_not_verify(script, spec):
    fake = script(rate=lambda made: 1500.0 if made.num_workers == 0 else 1000.0, noise=0.01)
    decide = partial(next_order, spec())
    while (order := decide(fake.records)).purpose != "verify":
        fake.run(order)
    for _ in range(4):
        fake.run(decide(fake.records))
    found = analyse(spec(), fake.records, [], {}, {})
    assert found.verification.pairs == 2
    assert found.verification.ci95 is None
    assert (found.recommendation.trial, found.recommendation.firmness) == ("nw0-pin0", "provisional")
    assert found.recommendation.versus_baseline.rounds == 6
