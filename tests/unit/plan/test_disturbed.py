"""Blocks that something outside disturbs: repeated once, at the end of their round, unless the machine is like that."""

import random

import pytest
from simulated_script import Noise, Pipeline
from simulator import Simulation, loader, sweep_spec

from pindiag.journal import Journal
from pindiag.race import chosen
from tests.unit.loads import CROWDED, load

BASELINE = "nw4-pin0"
CPU = Pipeline(fetch_s=0.06, compute_s=0.006, accelerator=None)


class Beside(Simulation):
    """Another process slows those blocks down that `busy` names, and takes CPUs from them; by number and place."""

    busy = staticmethod(lambda order, again: False)

    def _disturbed_s(self, made):
        order = self.blocks[-1][0]
        again = any(one.round == order.round and one.trial == order.trial for one, _, _ in self.blocks[:-1])
        self._crowded = self.busy(order, again)
        return super()._disturbed_s(made) * (3 if self._crowded else 1)

    def _record(self, order, trial, *rest, **more):
        super()._record(order, trial, *rest, **more)
        changes = CROWDED if self._crowded else {}
        self._write(load(order.block, trial=trial, **self._at(), **changes))


def simulate(busy):
    run = Beside(sweep_spec(rounds=4), loader(), CPU, Noise(block=0.002), seed=3)
    run.busy = busy
    return run.run()


def live_rounds(run):
    found = {}
    for order, _, launch in run.blocks:
        if launch == 1:
            found.setdefault(order.round, []).append(order.trial)
    return found


@pytest.fixture(scope="module")
def calm():
    return simulate(lambda order, second: False)


@pytest.fixture(scope="module")
def member(calm):
    """A configuration that is first in its round, so that its repetition is not where its turn was."""
    return next(trial for trial in live_rounds(calm)[1] if trial.startswith("nw") and trial != BASELINE)


@pytest.mark.parametrize("again", [False, True])
def test_a_disturbed_block_has_one_more_turn_at_the_end_of_its_round(calm, member, again):
    run = simulate(lambda order, second: order.round == 1 and order.trial == member and (again or not second))
    assert live_rounds(run)[1] == [*live_rounds(calm)[1], member]
    launch = Journal(run.records).launches[0]
    own = [block for block in launch.counted if (block.round, block.trial) == (1, member)]
    assert [block.block in launch.disturbed for block in own] == ([True, True] if again else [False])


def test_the_script_as_written_is_repeated_once_a_round(calm):
    run = simulate(lambda order, second: order.round == 1 and order.trial == BASELINE and not second)
    assert live_rounds(run)[1] == [*live_rounds(calm)[1], BASELINE]


def test_what_is_repeated_leaves_the_outcome_as_it_would_have_been(calm):
    best = chosen(Journal(calm.records))
    assert best != BASELINE
    disturbed = simulate(lambda order, second: order.trial == best and not second and order.round < 4)
    assert any(launch.replaced for launch in Journal(disturbed.records).launches)
    assert chosen(Journal(disturbed.records)) == best


def test_on_a_machine_that_is_always_busy_nothing_is_repeated(calm):
    busy = simulate(lambda order, second: order.block % 2 == 1)
    assert Journal(busy.records).launches[0].load_is_usual
    assert live_rounds(busy)[1] == live_rounds(calm)[1]


class Unseen(Beside):
    """The same, where the platform does not tell it."""

    def _record(self, order, trial, *rest, **more):
        Simulation._record(self, order, trial, *rest, **more)


def regret(kind, seed):
    draw = random.Random(seed)
    pipeline = Pipeline(fetch_s=draw.uniform(0.005, 0.08), compute_s=draw.uniform(0.002, 0.02), accelerator=None)
    run = kind(sweep_spec(verify=False), loader(), pipeline, Noise(block=0.03), seed=seed)
    run.busy = lambda order, second: draw.random() < 0.12
    journal = Journal(run.run().records)
    assert run.spent_s <= run.spec.budget_s + run.dearest_s
    steps_s = [pipeline.step_s(made) for made in journal.treatments.values() if made.kind == "configuration"]
    return pipeline.step_s(journal.treatments[chosen(journal)]) / min(steps_s) - 1


def test_what_is_seen_does_less_harm_than_what_is_not():
    assert sum(regret(Beside, seed) for seed in range(24)) < 0.7 * sum(regret(Unseen, seed) for seed in range(24))
