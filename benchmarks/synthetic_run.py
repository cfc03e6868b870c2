"""Complete run directories without a target: sweeps on a GPU, as the records that they leave.

`write_run` is a sweep in fresh launches alone. `write_live_run` is the default: one launch serves all treatments in
blocks, a scout reads the threads of a fresh process, and fresh pairs verify. Tests read what these make; cli_cost.py
times a report.
"""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
from synthetic_pipeline import BASELINE, CPUS, Costs, ablations, treatments
from synthetic_writer import Writer

from pindiag import __version__
from pindiag.model import (
    BlockOrder,
    BlocksOrdered,
    LaunchOrder,
    Machine,
    NextBlocks,
    Purpose,
    RunEnded,
    RunSpec,
    Treatment,
)
from pindiag.store import RunDirectory

SCRIPT = Path(__file__).resolve().parent.parent / "samples" / "article_floats.py"
COMPUTE_ROUNDS = 3


def write_run(
    path: Path, *, configurations: int = 12, rounds: int = 6, pairs: int = 4, trace_kernels: int = 150, seed: int = 0
) -> RunDirectory:
    """Write a run directory as a sweep in fresh launches leaves it, the user's script beside it, but no report.

    Args:
        path: the run directory; made here.
        configurations: how many, the baseline included.
        rounds: of these, in random order, the baseline twice in each.
        pairs: fresh launches of baseline and leader at the end.
        trace_kernels: kernels a step in each configuration's trace.
        seed: of order and noise.
    """
    sweep = Sweep(path, configurations, rounds, trace_kernels, seed, fresh=True)
    sweep.fresh_rounds(rounds)
    sweep.verify(pairs)
    return sweep.finished()


def write_live_run(
    path: Path, *, configurations: int = 12, rounds: int = 6, pairs: int = 4, trace_kernels: int = 150, seed: int = 0
) -> RunDirectory:
    """Write a run directory as a live sweep leaves it; the arguments are those of `write_run`.

    Beside the configurations each round has the ablations and a tweak; `compute_only` has rounds of its own.
    """
    sweep = Sweep(path, configurations, rounds, trace_kernels, seed, fresh=False)
    sweep.discover()
    sweep.scout()
    sweep.live_rounds(rounds)
    sweep.verify(pairs)
    return sweep.finished()


class Sweep:
    """The launches of a sweep, in their order."""

    def __init__(
        self, path: Path, configurations: int, rounds: int, trace_kernels: int, seed: int, *, fresh: bool
    ) -> None:
        script = path.parent / SCRIPT.name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SCRIPT, script)
        run = RunDirectory.create(path)
        run.write_spec(_spec(script, rounds, seed, fresh=fresh))
        run.target_log.write_text("")
        self.chance = random.Random(seed)
        self.writer = Writer(run, script, self.chance, trace_kernels)
        self.writer.lines("parent.jsonl", [_machine(self.writer.clock.after(0))])
        self.treatments = treatments(configurations)
        self.baseline = self.treatments[BASELINE.id]
        self.numbers = itertools.count(1)

    def finished(self) -> RunDirectory:
        """The run, over in order."""
        self.writer.lines("parent.jsonl", [RunEnded(launch=0, t_ns=self.writer.clock.after(10), status="ok")])
        return self.writer.run

    # ------------------------------------------------------------------------------------------ fresh launches

    def fresh_rounds(self, rounds: int) -> None:
        """Discover, which is the baseline's first block of round 1, and the rest of the rounds."""
        found = BlockOrder(block=next(self.numbers), round=1, trial="baseline")
        self.launch(LaunchOrder(purpose="discover", treatment=None, blocks=[found], profile=True))
        for turn in range(1, rounds + 1):
            once_more = [] if turn == 1 else [self.baseline]
            for place, treatment in enumerate(self.shuffled([*self.treatments.values(), *once_more])):
                order = self.fresh("round", turn, treatment)
                planned = list(self.treatments.values()) if place == 0 else []
                profile = turn == 1 and treatment != self.baseline
                self.launch(msgspec.structs.replace(order, planned=planned, profile=profile))

    def verify(self, pairs: int) -> None:
        """Baseline and the fastest configuration in alternating order."""
        leader = min(self.treatments.values(), key=lambda treatment: Costs.under(treatment).period)
        for pair in range(1, pairs + 1 if leader != self.baseline else 1):
            for treatment in (self.baseline, leader) if pair % 2 else (leader, self.baseline):
                self.launch(self.fresh("verify", pair, treatment))

    def scout(self) -> None:
        """A fresh process with a pin thread, up to its first step."""
        pinned = {**self.baseline.changes, "pin_memory": True}
        configuration = msgspec.structs.replace(BASELINE, pin_memory=True)
        treatment = Treatment(id=configuration.id, kind="configuration", configuration=configuration, changes=pinned)
        self.launch(LaunchOrder(purpose="scout", treatment=treatment, blocks=[]))

    def fresh(self, purpose: Purpose, turn: int, treatment: Treatment) -> LaunchOrder:
        """An order for a launch of one block."""
        block = BlockOrder(block=next(self.numbers), round=turn, trial=treatment.id)
        return LaunchOrder(purpose=purpose, treatment=treatment, blocks=[block])

    def launch(self, order: LaunchOrder) -> None:
        """Run a launch whose blocks have one treatment."""
        treatment, writer = order.treatment or self.baseline, self.writer
        trial = order.blocks[0].trial if order.blocks else treatment.id
        writer.began(order)
        serving = writer.serve(treatment, trial, live=order.isolation == "live")
        writer.choose(treatment.configuration)
        for block in order.blocks:
            writer.count(block, serving)
        if order.profile:
            writer.profile(trial, serving)
        writer.ended()

    def shuffled(self, turns: Sequence[Treatment]) -> list[Treatment]:
        """A round in random order."""
        return self.chance.sample(turns, len(turns))

    # ------------------------------------------------------------------------------------------- live launches

    def discover(self) -> None:
        """The first launch: one block of the script as written, in round 0."""
        found = BlockOrder(block=next(self.numbers), round=0, trial="baseline")
        self.launch(LaunchOrder(purpose="discover", isolation="live", treatment=None, blocks=[found]))

    def live_rounds(self, rounds: int) -> None:
        """All rounds in one launch, which is told one block at a time; then the windows."""
        compute_only, *others = ablations()
        tweak = Treatment(
            id=f"{self.baseline.id}+lazy_sync",
            kind="tweak",
            configuration=BASELINE,
            changes={"lazy_sync": True},
            tweak="lazy_sync",
        )
        members = [*self.treatments.values(), *others, tweak]
        plan = [(turn, members) for turn in range(1, rounds + 1)]
        plan += [(turn, [self.baseline, compute_only]) for turn in range(rounds + 1, rounds + 1 + COMPUTE_ROUNDS)]
        turns = [
            NextBlocks(blocks=[self.live_block(turn, treatment)], planned=planned if place == 0 else [])
            for turn, planned in plan
            for place, treatment in enumerate(self.shuffled(self.twice(planned, turn <= rounds)))
        ]
        self.live_launch(turns)

    def twice(self, planned: list[Treatment], race: bool) -> list[Treatment]:
        """A round of the race has the baseline twice, one of `compute_only` has it once."""
        return [*planned, self.baseline] if race else planned

    def live_block(self, turn: int, treatment: Treatment) -> BlockOrder:
        """An order for a block with a treatment of its own."""
        pin_thread = treatment.configuration.pin_memory and treatment.configuration.num_workers > 0
        return BlockOrder(
            block=next(self.numbers),
            round=turn,
            trial=treatment.id,
            treatment=treatment,
            intraop_threads=1 if pin_thread else CPUS,
        )

    def live_launch(self, turns: list[NextBlocks]) -> None:
        """Begin with the first turn, be told each other one at the end of a block."""
        writer, first = self.writer, turns[0]
        writer.began(
            LaunchOrder(purpose="round", isolation="live", treatment=None, blocks=first.blocks, planned=first.planned)
        )
        for told in turns:
            (block,) = told.blocks
            treatment = block.treatment or self.baseline
            if told is not first:
                writer.lines("parent.jsonl", [BlocksOrdered(**writer.at(1), next=told)])
            serving = writer.serve(treatment, block.trial, live=True)
            if told is first:
                writer.choose(treatment.configuration)
            writer.count(block, serving)
        self.windows()
        writer.ended()

    def windows(self) -> None:
        """A profiler window of each configuration."""
        orders = [
            BlockOrder(block=next(self.numbers), round=0, trial=treatment.id, treatment=treatment)
            for treatment in self.treatments.values()
        ]
        self.writer.lines("parent.jsonl", [BlocksOrdered(**self.writer.at(1), next=NextBlocks(windows=orders))])
        for treatment in self.treatments.values():
            self.writer.profile(treatment.id, self.writer.serve(treatment, treatment.id, live=True))


def _spec(script: Path, rounds: int, seed: int, *, fresh: bool) -> RunSpec:
    return RunSpec(
        target=str(script),
        module=False,
        args=[],
        cwd=str(script.parent),
        python="/usr/bin/python3",
        started_utc="2026-01-01T12:00:00+00:00",
        command=["pindiag", "run", script.name, "--sweep", *(["--fresh"] if fresh else [])],
        sweep=True,
        grid=None,
        budget_s=900.0,
        rounds=rounds,
        steps=None,
        seed=seed,
        device=None,
        loader=None,
        wait_s=600.0,
        fresh=fresh,
        usable_cpus=CPUS,
        pindiag_version=__version__,
    )


def _machine(t_ns: int) -> Machine:
    return Machine(
        launch=0,
        t_ns=t_ns,
        platform="Linux",
        kernel="6.8.0",
        logical_cpus=CPUS,
        physical_cpus=CPUS,
        usable_cpus=CPUS,
        usable_cpus_reason="all",
        memory_bytes=128 * 2**30,
        memory_available_bytes=100 * 2**30,
        cgroup_memory_limit_bytes=None,
        swap_bytes=0,
        shm_bytes=64 * 2**30,
        shm_free_bytes=64 * 2**30,
        open_files_limit=1_048_576,
        locked_memory_limit_bytes=None,
        gpus=[
            {
                "name": "NVIDIA H200",
                "uuid": "GPU-0",
                "memory_bytes": 141 * 10**9,
                "driver": "580.0",
                "pcie_gen": 5,
                "pcie_width": 16,
                "pcie_gen_max": 5,
                "pcie_width_max": 16,
            }
        ],
        fingerprint="synthetic",
    )
