"""Descriptors of the main process, over launches that never ran."""

from __future__ import annotations

from functools import partial
from statistics import median

import msgspec
import pytest

from pindiag.analysis import analyse
from pindiag.model import Block, Sample
from pindiag.plan.schedule import next_order


@pytest.fixture
def told(script, spec):
    """Facts of a run in which the main process held as many descriptors as `held` gives for a moment in seconds."""

    def run(held):
        fake = script(detailed=True)
        fake.machine()
        fake.play(partial(next_order, spec()))
        records = [
            msgspec.structs.replace(record, open_files=held(record.t_ns / 1e9), open_files_limit=1024)
            if isinstance(record, Sample)
            else record
            for record in fake.records
        ]
        found = analyse(spec(), records, fake.batches, {}, {})
        blocks = [record for record in records if isinstance(record, Block)]
        own = {fact.name: fact for fact in found.facts if fact.trial in (None, found.baseline)}
        counted = [block for block in blocks if block.block in found.trials[0].blocks]
        return own, median(block.steps / (block.ended_ns - block.started_ns) for block in counted) * 1e9

    return run


def test_what_grows_with_each_step(told):
    facts, steps_per_s = told(lambda second: round(100 * second))
    grown = facts["open_files_per_step"]
    assert grown.value == pytest.approx(100 / steps_per_s, rel=0.1)
    assert "sampler, block" in grown.source
    assert facts["open_files_own_limit"].value == 1024
    assert facts["open_files_least"].value < facts["open_files_most"].value


def test_where_it_shrinks_in_a_block_nothing_is_kept(told):
    facts, _ = told(lambda second: round(50 * abs(second % 20 - 10)))
    assert facts["open_files_per_step"].value < 0


def test_what_was_not_sampled_has_a_reason(told):
    facts, _ = told(lambda second: None)
    for name in ("open_files_per_step", "open_files_least", "open_files_most"):
        assert facts[name].value is None
        assert "not sampled" in facts[name].reason
