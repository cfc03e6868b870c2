"""Live sweeps on a synthetic pipeline, as records to be changed by tests."""

import dataclasses

import msgspec
import synthetic_run

from pindiag.analysis import analyse
from pindiag.model import Block, LaunchBegan

BASELINE, LEADER, BEATEN = "nw4-pin0-nb0", "nw0-pin1-nb1", "nw4-pin1-nb0"
LIVE = 3
"""The launch that runs the rounds, after discover and scout."""


@dataclasses.dataclass
class Recorded:
    """A run's records, to be changed by tests."""

    spec: object
    records: list
    batches: list

    def analysed(self):
        records = sorted(self.records, key=lambda record: record.t_ns)
        return analyse(self.spec, records, self.batches, {}, {})

    def changed(self, change, kind=Block):
        """A copy in which records of a kind are what `change` makes of them; None leaves one out."""
        made = [change(record) if isinstance(record, kind) else record for record in self.records]
        return dataclasses.replace(self, records=[record for record in made if record is not None])

    def blocks(self, trial, launch=LIVE):
        return [r for r in self.records if isinstance(r, Block) and (r.trial, r.launch) == (trial, launch)]

    def purpose(self, launch):
        began = (record for record in self.records if isinstance(record, LaunchBegan) and record.launch == launch)
        return next((record.order.purpose for record in began), None)


def recorded(folder, *, rounds=6, pairs=4, more=lambda sweep: None):
    sweep = synthetic_run.Sweep(folder / "run", 6, rounds, trace_kernels=3, seed=0, fresh=False)
    sweep.discover()
    sweep.scout()
    sweep.live_rounds(rounds)
    more(sweep)
    sweep.verify(pairs)
    run = sweep.finished()
    return Recorded(run.read_spec(), run.records(), run.worker_batches())


def trial(analysis, name):
    return next(trial for trial in analysis.trials if trial.id == name)


def fact(analysis, name, of=None):
    return next(fact for fact in analysis.facts if (fact.name, fact.trial) == (name, of))


def paced(factor, *trials, only=lambda block: True):
    """A change of blocks: those of some trials run faster by a factor."""

    def change(block):
        if block.trial not in trials or not only(block):
            return block
        return msgspec.structs.replace(block, samples=round(block.samples * factor))

    return change
