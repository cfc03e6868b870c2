"""How often pindiag claims a gain where there is none.

    python benchmarks/aa.py --quick --json -
    python benchmarks/aa.py --sweeps 40 --json PATH

Prints {"sweeps", "claims", "claimed", "simulated_sweeps", "simulated_claims", "coverage"}. A claim is a recommended
change that its verification bears out.

sweeps: real ones of targets/indifferent.py, where no loader setting matters; none with --quick. They run one after
another, since they would disturb each other, each with a seed of its own. claimed: what each claim was of. Interrupted,
it prints what there is: "cut_short". simulated_sweeps: the real plan and statistics over configurations that are equal,
with noise of blocks and of launches, drift, and 5 % outliers. coverage: share of the 95 % intervals of these sweeps, in
the race and in the verification, that hold the truth, 1.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import command
from simulated_script import Noise, Pipeline
from simulator import Simulation, loader, sweep_spec
from sweep_cost import sweep
from sweeps import Place

from pindiag import race
from pindiag.journal import Journal
from pindiag.model import Treatment

TARGET = Path(__file__).resolve().parent / "targets" / "indifferent.py"
SIMULATED = 2000
NOISE = Noise(block=0.03, outliers=0.05, outlier=1.5, launch=0.02, drift=0.02)


@dataclass
class Equal(Pipeline):
    """Every treatment takes the same."""

    def step_s(self, made: Treatment) -> float:  # noqa: ARG002
        """Ten milliseconds."""
        return 0.01

    def wait_s(self, made: Treatment) -> tuple[float, float]:  # noqa: ARG002
        """For nothing: there is no better configuration, and no stage says so."""
        return 0.0, 0.0


class Simulated(NamedTuple):
    """What came out of one simulated sweep."""

    claims: bool
    intervals: int
    """Stated at 95 %."""
    true: int
    """Of these, how many hold 1."""


def simulate(seed: int) -> Simulated:
    """One sweep over equal configurations, on a script with an accelerator or, every other time, without."""
    accelerator = "cuda" if seed % 2 else None
    baseline = loader(non_blocking=False if accelerator else None)
    run = Simulation(sweep_spec(seed=seed), baseline, Equal(accelerator=accelerator), NOISE, seed=seed)
    journal = Journal(run.run().records)
    leader = race.chosen(journal) or ""
    verified = [race.verification(journal, leader)]
    means = [*race.standings(journal).values(), *(mean for mean in verified if mean is not None)]
    intervals = [mean.ci95 for mean in means if mean.ci95 is not None]
    return Simulated(
        claims=race.claimed(journal) is not None,
        intervals=len(intervals),
        true=sum(low <= 1 <= high for low, high in intervals),
    )


def simulations(count: int) -> dict[str, object]:
    """What came out of as many simulated sweeps, on all CPUs."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found: Sequence[Simulated] = list(pool.map(simulate, range(count), chunksize=20))
    return {
        "simulated_sweeps": count,
        "simulated_claims": sum(one.claims for one in found),
        "coverage": round(sum(one.true for one in found) / max(sum(one.intervals for one in found), 1), 4),
    }


def claim(journal: Journal) -> dict[str, object] | None:
    """The gain that a sweep claims."""
    trial = race.claimed(journal)
    ratio = None if trial is None else race.verification(journal, trial)
    return None if ratio is None else {"trial": trial, "ratio": ratio.value, "ci95": ratio.ci95}


def count(journals: Iterable[Journal], figures: dict[str, object]) -> None:
    """Keep the figures up to date, sweep after sweep."""
    claimed: list[dict[str, object]] = []
    for number, journal in enumerate(journals, start=1):
        found = claim(journal)
        claimed += [] if found is None else [{"sweep": number, **found}]
        figures.update(sweeps=number, claims=len(claimed), claimed=claimed)
        print(f"sweep {number}: {found or 'no claim'}; {len(claimed)} in all", file=sys.stderr)


def real(sweeps: int, budget: str) -> Iterator[Journal]:
    """Sweeps of the target, one after another, their run directories removed.

    Raises:
        SystemExit: one failed.
    """
    for seed in range(sweeps):
        with tempfile.TemporaryDirectory() as folder:
            yield sweep(Place.of(TARGET, Path(folder)), ["--budget", budget, "--seed", str(seed)], []).journal


def main() -> None:
    """Measure and print."""
    parser = command.parser(__doc__, quick="simulated sweeps only")
    parser.add_argument("--sweeps", type=int, default=10, help="real sweeps; --quick makes none (10)")
    parser.add_argument("--budget", default="60s", help="of a real sweep (60s)")
    args = parser.parse_args()
    with command.kept(args.json) as figures:
        figures.update(sweeps=0, claims=0, claimed=[])
        figures.update(simulations(SIMULATED))
        count(real(0 if args.quick else args.sweeps, args.budget), figures)


if __name__ == "__main__":
    main()
