"""How often pindiag claims a gain where there is none.

    python benchmarks/aa.py --quick --json -
    python benchmarks/aa.py --sweeps 10 --json PATH

Prints {"sweeps", "claims", "simulated_sweeps", "simulated_claims", "coverage"}. A claim is a recommended change that
its verification bears out.

sweeps: real ones of targets/indifferent.py, where no loader setting matters; none with --quick. simulated_sweeps: the
real plan and statistics over configurations that are equal, with noise of blocks and of launches, drift, and 5 %
outliers. coverage: share of the 95 % intervals of these sweeps, in the race and in the verification, that hold the
truth, 1.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import command
from simulated_script import Noise, Pipeline
from simulator import Simulation, loader, sweep_spec

from pindiag import race
from pindiag.journal import Journal
from pindiag.model import Treatment
from pindiag.store import RunDirectory

TARGET = Path(__file__).resolve().parent / "targets" / "indifferent.py"
SIMULATED = 2000
NOISE = Noise(block=0.03, outliers=0.05, outlier=1.5, launch=0.02, drift=0.02)


@dataclass
class Equal(Pipeline):
    """Every treatment takes the same."""

    def step_s(self, made: Treatment) -> float:  # noqa: ARG002
        """Ten milliseconds."""
        return 0.01


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


def claims(folder: Path) -> bool:
    """Whether one real sweep claims a gain; its output is shown only if it fails.

    Raises:
        SystemExit: the sweep failed.
    """
    words = [sys.executable, "-m", "pindiag", "run", str(TARGET), "--sweep", "--budget", "60s", "-o", str(folder)]
    done = subprocess.run(words, cwd=folder.parent, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)} failed with {done.returncode}:\n{done.stdout}{done.stderr}")
    return race.claimed(Journal(RunDirectory.open(folder).records())) is not None


def measure(simulated: int, sweeps: int) -> dict[str, float]:
    """Simulate on all CPUs, then sweep, one after another."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found: Sequence[Simulated] = list(pool.map(simulate, range(simulated), chunksize=20))
    with tempfile.TemporaryDirectory() as folder:
        claimed = [claims(Path(folder) / f"run-{number}") for number in range(sweeps)]
    return {
        "sweeps": sweeps,
        "claims": sum(claimed),
        "simulated_sweeps": simulated,
        "simulated_claims": sum(one.claims for one in found),
        "coverage": round(sum(one.true for one in found) / max(sum(one.intervals for one in found), 1), 4),
    }


def main() -> None:
    """Measure and print."""
    parser = command.parser(__doc__, quick="simulated sweeps only")
    parser.add_argument("--sweeps", type=int, default=10, help="real sweeps; --quick makes none (10)")
    args = parser.parse_args()
    command.write(measure(SIMULATED, 0 if args.quick else args.sweeps), args.json)


if __name__ == "__main__":
    main()
