"""What pindiag recommends, against the best of the usual rules.

    python benchmarks/versus_advice.py --quick --json -
    python benchmarks/versus_advice.py article_floats tabular_rows --budget 5m --json PATH -- --samples 1000

Prints {"cases": [{"sample", "ratio_to_best_advice", "ci95", "same", ...}]}.

Each sample is swept as a user does, verification included, unless the FOLDER of --runs has its sweep. Then every rule's
configuration and the recommended one run in fresh launches, one block each, in rounds of random order. Odd rounds
choose the best advice: all rules at first, then those that are not shown to be slower than the best. Even rounds
measure: the recommendation beside the advice that leads. The ratio is that of throughputs, paired within even rounds,
with its 95 % interval; rounds go on until its half-width is 5 %, or to --rounds. Where the recommendation is the best
advice itself, the ratio is 1 and nothing is measured: "same" says so. Interrupted, what ran until then counts, without
the odd round that was cut.

The rules: the script as written; pin_memory with non_blocking; a worker a CPU of the machine; half as many; 4 workers;
torch.get_num_threads() workers that persist, pinned where there is a GPU, as an article's `create_optimal_dataloader`
has it; and the number up to which torch's DataLoader does not warn of too many workers, a worker a CPU of the affinity
mask. Rules that come to the same configuration run once.

With --quick a target with planted waits is swept for a few seconds, and one round chooses among five of the rules.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import command
import torch
from fresh_launches import FreshOnly, conduct, end_if_interrupted, is_interrupted, of_treatment, spec_of
from sweep_cost import SAMPLES, WAITS, Planted, Swept, sweep
from sweeps import Place, add_runs, kept_in

from pindiag.journal import Journal
from pindiag.model import AnyRecord, LaunchOrder, RunSpec, Treatment
from pindiag.plan.treatments import Changes, treatment
from pindiag.stats import Mean, Rate, compare, geometric_mean, paired_ratios


@dataclass(frozen=True)
class Host:
    """What rules look at."""

    cpus: int
    """Of the machine."""
    allowed_cpus: int
    """By the affinity mask, which is all that torch looks at."""
    threads: int
    """Of torch, in a fresh process."""
    has_gpu: bool


def this_host() -> Host:
    """The machine that this runs on."""
    cpus = os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cpus
    return Host(cpus, allowed, torch.get_num_threads(), torch.cuda.is_available())


def rules(host: Host) -> dict[str, Changes]:
    """What each rule changes in any script."""
    return {
        "as written": {},
        "pin_memory and non_blocking": {"pin_memory": True, "non_blocking": True},
        "workers = CPUs": {"num_workers": host.cpus},
        "workers = CPUs / 2": {"num_workers": max(host.cpus // 2, 1)},
        "4 workers": {"num_workers": 4},
        "create_optimal_dataloader": {
            "num_workers": host.threads,
            "pin_memory": host.has_gpu,
            "persistent_workers": True,
            "prefetch_factor": 2,
        },
        "torch's suggestion": {"num_workers": host.allowed_cpus},
    }


@dataclass(frozen=True)
class Limits:
    """How long a launch counts, and when choosing and measuring end."""

    rounds: int = 24
    """At most, odd and even ones."""
    choosing: int = 6
    """Odd rounds that choose, at most."""
    fewest: int = 4
    """Measuring rounds before an interval is believed; choosing rounds before the recommendation may be the best."""
    narrow: float = 0.05
    """Half-width of the log ratio."""
    seconds: float = 1.5
    """Counted ones of a launch."""
    left_out: frozenset[str] = frozenset()
    """Rules that are not run."""


PLANTED = Planted(name="dear to unpack", workers=1, grid=(0, 1), fetch_ms=3, unpack_ms=27, step_ms=3, start_s=0.0)
"""Five times as fast without workers, which no rule says."""

QUICK = Limits(
    rounds=6, choosing=1, fewest=3, seconds=0.3, left_out=frozenset({"4 workers", "pin_memory and non_blocking"})
)


class Standings:
    """What the rounds so far say."""

    def __init__(self, rates: Sequence[Rate], advice: Sequence[str], recommended: str, limits: Limits) -> None:
        self._limits = limits
        self._recommended = recommended
        self._odd = [rate for rate in rates if rate.round % 2 and rate.trial in advice]
        self._even = [rate for rate in rates if rate.round % 2 == 0]
        self._advice = list(advice)

    @property
    def has_chosen(self) -> bool:
        """Whether any round did."""
        return bool(self._odd)

    @property
    def choosing(self) -> int:
        """How many rounds have chosen so far."""
        return len({rate.round for rate in self._odd})

    @property
    def best(self) -> str:
        """The advice that leads."""
        return max(self._left, key=lambda trial: self._over(trial, self._left[0]).value)

    @property
    def near(self) -> list[str]:
        """Advice that may still be the best."""
        if not self._odd:
            return self._advice
        if self.choosing >= self._limits.choosing:
            return [self.best]
        intervals = {trial: self._over(trial, self.best).ci95 for trial in self._left}
        return [trial for trial, ci95 in intervals.items() if ci95 is None or ci95[1] >= 1]

    @property
    def _left(self) -> list[str]:
        """Advice of the latest round that gave something to count; it ran in all rounds before.

        Raises:
            SystemExit: no rule's configuration gave anything.
        """
        if not self._odd:
            raise SystemExit("no rule's configuration, the script as written among them, gave a block that counts")
        latest = max(rate.round for rate in self._odd)
        return sorted(rate.trial for rate in self._odd if rate.round == latest)

    def _over(self, trial: str, other: str) -> Mean:
        ran = [rate for rate in self._odd if rate.trial in (trial, other)]
        return compare(ran, other).get(trial) or Mean(1.0, (1.0, 1.0), 0, None)

    @property
    def same(self) -> bool:
        """Whether the recommendation is the best advice."""
        return self.best == self._recommended

    @property
    def ratio(self) -> Mean | None:
        """The recommendation's throughput over that of the best advice."""
        ratios = paired_ratios(self._even, self.best).get(self._recommended)
        return geometric_mean(ratios) if ratios else None

    @property
    def settled(self) -> bool:
        """Whether more rounds add nothing."""
        if self.same:
            return self.near == [self._recommended] or self.choosing >= self._limits.fewest
        ratio = self.ratio
        narrow = ratio is not None and ratio.half_width is not None and ratio.half_width <= self._limits.narrow
        return ratio is not None and ratio.count >= self._limits.fewest and narrow

    def members(self, number: int) -> list[str]:
        """What a round runs: nothing where it could not tell anything."""
        if number % 2:
            return self.near if not self._odd or len(self.near) > 1 else []
        return [] if self.same else [self._recommended, self.best]


class Rounds(FreshOnly):
    """Asks for the launches of one round after another, each round in random order, until more would add nothing."""

    def __init__(self, advice: Sequence[Treatment], recommended: Treatment, limits: Limits, seed: int = 0) -> None:
        self._made = {made.id: made for made in (*advice, recommended)}
        self._advice = list(dict.fromkeys(made.id for made in advice))
        self._recommended = recommended.id
        self._limits = limits
        self._random = random.Random(seed)
        self._round = 0
        self._launches = 0
        self._turns: list[str] = []

    def standings(self, journal: Journal) -> Standings:
        """What is known; an odd round that was cut does not choose."""
        cut = {self._round} if is_interrupted(journal) and self._round % 2 else set()
        rates = [rate for rate in journal.rates("round") if rate.round not in cut]
        return Standings(rates, self._advice, self._recommended, self._limits)

    def next_launch(self, records: Sequence[AnyRecord], /) -> LaunchOrder | None:
        """The next one of the running round, or the first of a new one."""
        if not self._turns:
            self._open(self.standings(Journal(records)))
        if not self._turns:
            return None
        self._launches += 1
        trial = self._turns.pop()
        print(f"round {self._round} of at most {self._limits.rounds}: {trial}", file=sys.stderr)
        return of_treatment(self._made[trial], self._round, self._launches, self._limits.seconds)

    def _open(self, known: Standings) -> None:
        if self._launches and known.settled:
            return
        while not self._turns and self._round < self._limits.rounds:
            self._round += 1
            self._turns = known.members(self._round)
        self._random.shuffle(self._turns)


# ------------------------------------------------------------------------------------------------------ measuring


def launch(name: str, swept: Swept, spec: RunSpec, limits: Limits, folder: Path) -> tuple[dict[str, object], Journal]:
    """Run the rounds for what was swept: its row, and the launches.

    Raises:
        SystemExit: the sweep does not know the script's own configuration.
    """
    baseline = swept.journal.baseline
    if baseline is None:
        raise SystemExit(f"the sweep of {name} did not find its loader")
    named = {rule: changes for rule, changes in rules(this_host()).items() if rule not in limits.left_out}
    made = {rule: treatment(baseline, changes) for rule, changes in named.items()}
    plan = Rounds(list(made.values()), swept.journal.treatments[swept.recommended], limits)
    journal = conduct(spec, plan, folder)
    return case(name, swept, {rule: each.id for rule, each in made.items()}, plan.standings(journal), journal), journal


UNKNOWN = dict.fromkeys(("ratio_to_best_advice", "ci95", "same", "best_advice", "best_rules", "measuring_rounds"))


def case(name: str, swept: Swept, named: Mapping[str, str], known: Standings, journal: Journal) -> dict[str, object]:
    """One row of what is printed; before a round has chosen, there is no best advice.

    Raises:
        SystemExit: no rule's configuration gave anything, though they ran to their end.
    """
    told: dict[str, object] = {
        "sample": name,
        "recommended": swept.recommended,
        "rules": dict(named),
        "choosing_rounds": known.choosing,
        "sweep_s": swept.wall_s,
        "failed": failures(journal),
    }
    if is_interrupted(journal) and not known.has_chosen:
        return told | UNKNOWN
    ratio = Mean(1.0, (1.0, 1.0), 0, None) if known.same else known.ratio
    return told | {
        "ratio_to_best_advice": None if ratio is None else ratio.value,
        "ci95": None if ratio is None else ratio.ci95,
        "same": known.same,
        "best_advice": known.best,
        "best_rules": [rule for rule, trial in named.items() if trial == known.best],
        "measuring_rounds": 0 if ratio is None else ratio.count,
    }


def failures(journal: Journal) -> dict[str, str]:
    """Treatments of launches that gave nothing to count, with the reason."""
    return {
        each.treatment.id: each.ended.reason or each.ended.exit
        for each in journal.launches
        if each.treatment is not None and each.ended is not None and not each.measured and not each.interrupted
    }


@dataclass(frozen=True)
class Asked:
    """One script, and how it is swept and compared."""

    name: str
    script: Path
    words: Sequence[str]
    arguments: Sequence[str]
    limits: Limits


QUICK_SWEEP = ("--no-verify", "--budget", "12s", "--rounds", "3", "--steps", "6", "--grid", "num_workers=0,1")
PLANTED_ALONE = Asked(PLANTED.name, WAITS, QUICK_SWEEP, PLANTED.arguments, QUICK)
"""A target whose batches are dear to unpack, so that no rule helps."""


def compared(asked: Asked, runs: Path) -> tuple[dict[str, object], Journal]:
    """Sweep a script, then run the rounds: its row, and their launches."""
    place = Place.of(asked.script, runs)
    swept = sweep(place, asked.words, asked.arguments)
    print(f"{asked.name}: {swept.recommended} is recommended", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        return launch(asked.name, swept, spec_of(place.script, place.arguments), asked.limits, Path(folder) / "rounds")


def main() -> None:
    """Measure and print; interrupted, what was measured so far."""
    parser = command.parser(__doc__, quick="one target with planted waits, in less than a minute")
    parser.add_argument("samples", nargs="*", help="names of scripts in samples/; what follows -- are their arguments")
    parser.add_argument("--budget", default="5m", help="of the sweep (5m)")
    parser.add_argument("--grid", help="what to sweep; default: pindiag's own choice")
    parser.add_argument("--rounds", type=int, default=Limits.rounds, help=f"at most ({Limits.rounds})")
    parser.add_argument("--choosing", type=int, default=Limits.choosing, help=f"of these, at most ({Limits.choosing})")
    parser.add_argument("--seconds", type=float, default=Limits.seconds, help=f"counted a launch ({Limits.seconds})")
    add_runs(parser)
    own, arguments = command.at_dashes(sys.argv[1:])
    asked = parser.parse_args(own)
    if not asked.quick and not asked.samples:
        parser.error("name samples, or give --quick")
    words = ["--budget", asked.budget, *(["--grid", asked.grid] if asked.grid else [])]
    limits = Limits(rounds=asked.rounds, choosing=asked.choosing, seconds=asked.seconds)
    samples = [Asked(name, SAMPLES / f"{name}.py", words, arguments, limits) for name in asked.samples]
    cases: list[dict[str, object]] = []
    with command.kept(asked.json) as figures, kept_in(asked.runs) as runs:
        figures["cases"] = cases
        for each in [PLANTED_ALONE] if asked.quick else samples:
            row, journal = compared(each, runs)
            cases.append(row)
            end_if_interrupted(journal)


if __name__ == "__main__":
    main()
