"""A tweak that clearly gains more than any configuration is what is verified, and what comes first."""

import functools
from dataclasses import dataclass

import msgspec
import pytest
from simulated_script import Noise, Pipeline
from simulator import Simulation, loader, sweep_spec

from pindiag.analysis import recommend
from pindiag.journal import Journal
from pindiag.model import Block
from pindiag.plan.schedule import leading, next_blocks
from pindiag.race import beside, chosen, claimed, comes_first, leader, recommended, standings
from tests.unit.loads import load

OWN = "nw4-pin0"
TWEAK = f"{OWN}+fewer_intraop_threads"


@dataclass
class Crowded(Pipeline):
    """Its main thread and its workers take CPUs from each other."""

    gain: float = 2.0
    """Of half the threads in the main thread."""
    alone: float = 1.0
    """Of no workers."""
    together: float | None = None
    """Of both; where it is not given, they mend the same."""
    mends: str = "fewer_intraop_threads"

    def step_s(self, made):
        if made.ablation is not None:
            return super().step_s(made)
        gains = [
            self.alone if made.configuration.num_workers == 0 else 1.0,
            self.gain if made.tweak == self.mends else 1.0,
        ]
        both = self.together if min(gains) > 1 else None
        return 0.01 / (both or max(gains))

    def wait_s(self, made):
        return 0.6 * self.step_s(made), 0.06 * self.step_s(made)


class Watched(Simulation):
    """The sampler sees workers that queue, and each block the threads of the main process."""

    live_only = False
    """Whether fresh launches know nothing of the tweak's gain."""
    fresh = False
    worker_threads = 2

    def _fresh(self, order, own):
        self.fresh = True
        super()._fresh(order, own)
        self.fresh = False

    def _disturbed_s(self, made):
        plain = msgspec.structs.replace(made, tweak=None) if self.fresh and self.live_only else made
        return super()._disturbed_s(plain)

    def _write(self, record):
        super()._write(msgspec.structs.replace(record, intraop_threads=8) if isinstance(record, Block) else record)

    def _record(self, order, trial, *rest, **more):
        super()._record(order, trial, *rest, **more)
        self._write(
            load(order.block, trial=trial, **self._at(), queued_share=0.4, worker_threads=self.worker_threads, cpus=8)
        )


@functools.cache
def sweep(gain, alone, together=None, *, live_only=False, **asked):
    pipeline = Crowded(0.02, compute_s=0.006, accelerator=None, threads=8, gain=gain, alone=alone, together=together)
    run = Watched(sweep_spec(**asked), loader(), pipeline, Noise(block=0.01), seed=3)
    run.live_only = live_only
    return run.run()


def verified(run):
    return {made.id for order, made, launch in run.blocks if _purpose(run, launch) == "verify"} - {OWN}


def _purpose(run, launch):
    return next(one.purpose for one in Journal(run.records).launches if one.id == launch)


@pytest.mark.parametrize("alone", [1.3, 1.0], ids=["beside a configuration", "alone"])
def test_it_is_verified_by_pairs_and_claimed(alone):
    run = sweep(2.0, alone)
    journal = Journal(run.records)
    assert verified(run) == {TWEAK}
    assert leader(journal) == comes_first(journal) == claimed(journal) == TWEAK
    assert leading(run.spec, run.records)[0] == TWEAK
    own = chosen(journal)
    assert own == recommended(journal)
    assert (own == OWN) is (alone == 1.0), "the configuration is told beside it"
    asked = [launch.order for launch in journal.launches if launch.purpose == "verify"]
    assert {order.treatment.changes.get("fewer_intraop_threads") for order in asked} == {4, None}
    assert asked[0].blocks[0].epochs == 2, "whole epochs, as of a configuration"
    pairs = recommend.verification(journal)
    assert (pairs.trial, pairs.pairs >= 4) == (TWEAK, True)
    assert pairs.ratio == pytest.approx(2.0, rel=0.05)


BOTH = "nw0-pin0+fewer_intraop_threads"


def raced(run):
    """Round to the trials of a live race."""
    found = {}
    for block in Journal(run.records).blocks("discover", "round", isolation="live"):
        found.setdefault(block.round, []).append(block.trial)
    return {number: trials for number, trials in found.items() if number and "compute_only" not in trials}


@pytest.mark.parametrize(("gain", "alone"), [(2.0, 1.3), (1.3, 2.0)], ids=["code first", "arguments first"])
def test_both_together_are_tried_after_two_rounds_and_lead_where_they_gain_clearly_more(gain, alone):
    run = sweep(gain, alone, 2.6)
    journal = Journal(run.records)
    tried = [number for number, trials in raced(run).items() if BOTH in trials]
    assert len(tried) == 3
    assert tried[0] == sorted(raced(run))[2]
    assert all(raced(run)[number].count(BOTH) == 1 for number in tried)
    assert journal.treatments[BOTH].changes == {"num_workers": 0, "fewer_intraop_threads": 4}
    assert verified(run) == {BOTH}
    assert leader(journal) == comes_first(journal) == claimed(journal) == BOTH
    assert recommended(journal) == "nw0-pin0"
    gated = [made.id for launch in journal.launches for order in launch.orders for made in order.gates]
    assert "nw0-pin0" in gated, "the line of code changes no batch, the arguments may"


@pytest.mark.parametrize(("gain", "alone", "ahead"), [(2.0, 1.3, TWEAK), (1.3, 2.0, "nw0-pin0")])
def test_both_together_make_way_for_the_one_that_gains_as_much_alone(gain, alone, ahead):
    run = sweep(gain, alone)
    journal = Journal(run.records)
    assert beside(journal)[BOTH].ci95 is not None
    assert verified(run) == {ahead}
    assert leader(journal) == comes_first(journal) == claimed(journal) == ahead


def test_both_together_cost_a_decided_race_no_more_than_three_rounds():
    with_it, without = raced(sweep(1.3, 2.0)), raced(sweep(1.0, 2.0))
    assert BOTH in {name for trials in with_it.values() for name in trials}
    assert BOTH not in {name for trials in without.values() for name in trials}
    assert len(with_it) - len(without) <= 3


@pytest.mark.parametrize(
    "asked", [{"budget_s": 50.0}, {"grid": "num_workers=0,2", "rounds": 3}], ids=["time", "rounds"]
)
def test_both_together_are_not_tried_where_three_rounds_of_them_do_not_fit(asked):
    run = sweep(2.0, 1.3, 2.6, **asked)
    assert {TWEAK, "nw0-pin0"} <= {name for trials in raced(run).values() for name in trials}
    assert BOTH not in Journal(run.records).treatments
    assert run.spent_s <= run.spec.budget_s + run.dearest_s


def test_nothing_is_tried_together_where_one_of_them_does_not_gain():
    for gain, alone in ((2.0, 1.0), (1.0, 1.3)):
        kinds = [made for made in Journal(sweep(gain, alone).records).treatments.values() if made.kind == "tweak"]
        assert [made.id for made in kinds] == [TWEAK]


def test_what_concerns_workers_is_not_tried_without_any():
    pipeline = Crowded(0.02, compute_s=0.006, accelerator=None, gain=2.0, alone=1.3, mends="worker_threads")
    run = Watched(sweep_spec(), loader(), pipeline, Noise(block=0.01), seed=3)
    run.worker_threads = 9
    journal = Journal(run.run().records)
    assert leader(journal) == f"{OWN}+worker_threads"
    assert chosen(journal) == "nw0-pin0"
    assert "nw0-pin0+worker_threads" not in journal.treatments


def test_where_the_intervals_overlap_the_configuration_comes_first():
    run = sweep(1.31, 1.3)
    journal = Journal(run.records)
    own = chosen(journal)
    assert own.startswith("nw0")
    assert verified(run) == {own}
    assert leader(journal) == comes_first(journal) == claimed(journal) == own
    assert leading(run.spec, run.records)[0].startswith("nw0")


def test_what_fresh_pairs_do_not_bear_out_makes_way_for_the_configuration():
    run = sweep(2.0, 1.3, live_only=True)
    journal = Journal(run.records)
    assert verified(run) == {leader(journal)} == {TWEAK}
    assert comes_first(journal) == recommended(journal) == chosen(journal) != OWN
    assert claimed(journal) is None
    assert recommend.verification(journal).trial == TWEAK


def test_a_configuration_is_before_what_fresh_pairs_left_of_a_tweak():
    run = sweep(2.0, 1.3)
    pairs = {launch.id for launch in Journal(run.records).launches if launch.purpose == "verify"}
    slower = [
        msgspec.structs.replace(record, seconds=record.seconds * 2.0 / 1.1)
        if isinstance(record, Block) and record.launch in pairs and record.trial == TWEAK
        else record
        for record in run.records
    ]
    journal = Journal(slower)
    left = recommend.verification(journal)
    assert 1 < left.ci95[0] < left.ci95[1] < 1.25
    assert leader(journal) == TWEAK
    assert comes_first(journal) == recommended(journal) == chosen(journal) != OWN


def test_the_configuration_of_a_tweak_passes_the_gate_although_alone_it_is_slow():
    """Pinning alone takes the main thread's threads away; with them given back it is best."""
    pipeline = Pipeline(
        fetch_s=0.004, compute_s=0.001, host_s=0.002, threads=8, pageable_s=0.012, pinned_s=0.0003, pin_s=0.0004
    )
    run = Simulation(sweep_spec(), loader(non_blocking=False), pipeline, Noise(block=0.005), seed=3).run()
    journal = Journal(run.records)
    ahead, alone = claimed(journal), chosen(journal)
    assert ahead == "nw4-pin1-nb1+intraop_threads"
    assert standings(journal)["nw4-pin1-nb1"].value < 1 < standings(journal)[alone].value
    gated = [made.id for launch in journal.launches for order in launch.orders for made in order.gates]
    assert gated == ["nw4-pin1-nb1", alone]


def test_a_tweak_that_the_first_round_had_no_time_for_joins_where_three_rounds_of_it_fit():
    spec, pipeline = sweep_spec(budget_s=35.0), Crowded(fetch_s=0.02, compute_s=0.006, accelerator=None, threads=8)
    run = Watched(spec, loader(), pipeline, Noise(block=0.01), seed=3).run()
    second = [place for place, record in enumerate(run.records) if isinstance(record, Block) and record.round == 2]
    so_far = run.records[: second[-1] + 1]
    assert TWEAK in Journal(so_far).skipped
    assert planned(spec, so_far).isdisjoint({TWEAK})
    assert TWEAK in planned(msgspec.structs.replace(spec, budget_s=300.0), so_far)


def planned(spec, records):
    order = next_blocks(spec, records)
    return {made.id for made in order.planned} - order.skipped.keys()
