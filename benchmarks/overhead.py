"""What the probe costs the training loop, in time of the main thread and in throughput.

    python benchmarks/overhead.py --quick --json -

Prints {"cases": [{"name", "step_ms", "tensors", "probed_over_plain", "probed_over_plain_ci95", "added_us_per_step",
"added_us_ci95", "bound_us", "own_us_per_step", "pairs"}]}.

targets/switched.py is launched by the product itself: real probe, journal, pipe and sampler. Inside, two iterators of
equal loaders take turns, block by block and in random order: one that the probe serves, in a block that it counts, with
all that it wraps in torch in place; and one that torch made with all of this taken out, which the probe does not know.
Cases named "fresh processes" compare whole processes: launched by the product, and started by Python alone.

added_us_per_step: CPU time that the probe adds to the main thread: time.thread_time at both ends of each block, less
that of the loop's own work (small torch operations, for a time on the clock), a step's share of it, probed less plain
within each pair; the median of the pairs. probed_over_plain: ratio of throughputs within each pair, the median; null
in cases of CPU time alone. Intervals are those of order statistics, which ask nothing of the distribution. A case that
is not settled (half-width above 2 %, or above 3 us) is launched again, and its pairs are added. step_ms is a plain
step's.

bound_us is what added_us_ci95 stays below: 15 us a step and 1 us a tensor. own_us_per_step is what the probe itself
says that it cost, by the clock.
"""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import command
from fresh_launches import launch_all, spec_of

from pindiag.model import BlockOrder, LaunchOrder
from pindiag.stats import median

TARGET = Path(__file__).resolve().parent / "targets" / "switched.py"
BLOCK_MS = 60.0
"""How long a block of switching lasts: short ones meet the same machine."""

FRESH_MS = 2_500.0
"""The same of a whole process."""

UNENDING = BlockOrder(block=1, round=1, trial="baseline", seconds=0.1, steps=1_000_000_000)
STEP_BOUND_US = 15.0
TENSOR_BOUND_US = 1.0
SETTLED_RATIO = 0.02
SETTLED_US = 3.0
MOST_LAUNCHES = 3
CONFIDENCE = 0.95

TINY_FLOATS = 4
LARGE_BYTES = 8_000_000
"""Of a batch: more than caches near a core hold."""


class Timed(NamedTuple):
    """A block: microseconds a step."""

    cpu_us: float
    clock_us: float


Pair = tuple[Timed, Timed]
"""Probed, plain."""


@dataclass(frozen=True)
class Case:
    """A loop, and how it is measured."""

    work_ms: float
    workers: int
    tensors: int = 1
    large: bool = False
    fresh: bool = False
    throughput: bool = True

    @property
    def name(self) -> str:
        """Says what the loop does."""
        what = f"{'large' if self.large else 'tiny'} batches of {self.tensors} tensor{'s' * (self.tensors > 1)}"
        return f"{self.work_ms:g} ms, {self.workers} workers, {what}" + (", fresh processes" * self.fresh)

    @property
    def bound_us(self) -> float:
        """What the probe may cost a step."""
        return STEP_BOUND_US + TENSOR_BOUND_US * self.tensors

    def arguments(self, figures: Path, seconds: float) -> list[str]:
        """What targets/switched.py is told."""
        floats = LARGE_BYTES // (4 * 8 * self.tensors) if self.large else TINY_FLOATS
        told: dict[str, object] = {
            "workers": self.workers,
            "tensors": self.tensors,
            "floats": floats,
            "work-ms": self.work_ms,
        }
        told |= {"block-ms": FRESH_MS} if self.fresh else {"block-ms": BLOCK_MS, "seconds": seconds}
        told |= {"work-ms": self.work_ms, "figures": figures}
        return [word for name, value in told.items() for word in (f"--{name}", str(value))]


def _full() -> list[Case]:
    found = [
        Case(work_ms, workers, tensors, large, throughput=work_ms >= 2)
        for work_ms in (0.2, 2.0, 20.0)
        for workers in (0, 2)
        for tensors, large in ((1, False), (2, True))
    ]
    found += [Case(work_ms, workers, 32, throughput=work_ms >= 2) for work_ms in (0.2, 2.0) for workers in (0, 2)]
    found += [Case(2.0, workers, 32, large=True) for workers in (0, 2)]
    return [*found, Case(2.0, 0, fresh=True), Case(20.0, 2, 2, large=True, fresh=True)]


FULL = _full()
QUICK = [Case(0.2, 0, throughput=False), Case(0.2, 0, 32, throughput=False), Case(2.0, 2)]


class Measured(NamedTuple):
    """What a case showed so far."""

    pairs: list[Pair]
    own_us: list[float]

    @property
    def added_us(self) -> list[float]:
        """CPU time that the probe added, pair by pair."""
        return [probed.cpu_us - plain.cpu_us for probed, plain in self.pairs]

    @property
    def ratios(self) -> list[float]:
        """Throughput probed over plain, pair by pair."""
        return [plain.clock_us / probed.clock_us for probed, plain in self.pairs]


def median_ci95(values: Sequence[float]) -> tuple[float, float] | None:
    """Interval of the median between two of the values; None for fewer than six, of which no two are that sure."""
    ordered, tail, rank = sorted(values), 0.0, 0
    while tail + math.comb(len(ordered), rank) / 2 ** len(ordered) <= (1 - CONFIDENCE) / 2:
        tail += math.comb(len(ordered), rank) / 2 ** len(ordered)
        rank += 1
    return (ordered[rank - 1], ordered[-rank]) if rank else None


def is_settled(case: Case, measured: Measured) -> bool:
    """Whether more pairs are not needed."""
    wanted = [(measured.added_us, SETTLED_US)] + [(measured.ratios, SETTLED_RATIO)] * case.throughput
    return all(_half_width(values) <= most for values, most in wanted)


def _half_width(values: Sequence[float]) -> float:
    interval = median_ci95(values)
    return math.inf if interval is None else (interval[1] - interval[0]) / 2


def probed(case: Case, folder: Path, seconds: float) -> tuple[list[list[float]], float]:
    """Launch the target by the product; what it wrote, and what the probe says of its own cost.

    Raises:
        SystemExit: the launch measured nothing.
    """
    order = LaunchOrder(purpose="discover", treatment=None, blocks=[UNENDING])
    figures = folder.with_suffix(".json")
    journal = launch_all(spec_of(TARGET, case.arguments(figures, seconds)), [order], folder)
    blocks = journal.blocks("discover")
    if not figures.exists() or not blocks:
        raise SystemExit(f"{case.name}: nothing was measured:\n{(folder / 'target.log').read_text()}")
    return json.loads(figures.read_text()), blocks[0].probe_us_per_step


def plain(case: Case, folder: Path) -> list[float]:
    """Start the target by Python alone; what it wrote."""
    figures = folder.with_suffix(".json")
    subprocess.run([sys.executable, str(TARGET), *case.arguments(figures, 0)], check=True)
    found: list[float] = json.loads(figures.read_text())
    return found


def fresh_pair(case: Case, folder: Path, *, probed_first: bool) -> tuple[Pair, float]:
    """One process of each kind."""
    bare = None if probed_first else plain(case, folder / "plain")
    with_probe, own_us = probed(case, folder / "probed", 0)
    bare = bare or plain(case, folder / "plain")
    return (Timed(*with_probe), Timed(*bare)), own_us


def add_pairs(case: Case, measured: Measured, folder: Path, *, seconds: float) -> None:
    """Measure a case once more."""
    folder.mkdir()
    if not case.fresh:
        found, own_us = probed(case, folder / "probed", seconds)
        measured.pairs.extend((Timed(*one), Timed(*other)) for one, other in found)
        measured.own_us.append(own_us)
        return
    chance = random.Random(folder.name)
    for number in range(7):
        (folder / str(number)).mkdir()
        pair, own_us = fresh_pair(case, folder / str(number), probed_first=chance.random() < 0.5)
        measured.pairs.append(pair)
        measured.own_us.append(own_us)


def measure(case: Case, folder: Path, *, seconds: float, launches: int) -> Measured:
    """Measure a case until it is settled, or so many times."""
    measured = Measured([], [])
    for number in range(launches):
        add_pairs(case, measured, folder.with_name(f"{folder.name}-{number}"), seconds=seconds)
        if is_settled(case, measured):
            break
    return measured


def row(case: Case, measured: Measured) -> dict[str, object]:
    """One row of what is printed."""
    added, ratios = measured.added_us, measured.ratios
    return {
        "name": case.name,
        "step_ms": round(median([plain.clock_us for _, plain in measured.pairs]) / 1e3, 3),
        "tensors": case.tensors,
        "probed_over_plain": round(median(ratios), 4) if case.throughput else None,
        "probed_over_plain_ci95": _rounded(median_ci95(ratios), 4) if case.throughput else None,
        "added_us_per_step": round(median(added), 2),
        "added_us_ci95": _rounded(median_ci95(added), 2),
        "bound_us": case.bound_us,
        "own_us_per_step": round(median(measured.own_us), 2),
        "pairs": len(measured.pairs),
    }


def _rounded(interval: tuple[float, float] | None, digits: int) -> list[float] | None:
    return None if interval is None else [round(end, digits) for end in interval]


def main() -> None:
    """Measure and print."""
    asked = command.parser(__doc__, quick="CPU time of two loops and throughput of one").parse_args()
    seconds, launches = (6.0, 1) if asked.quick else (8.0, MOST_LAUNCHES)
    with tempfile.TemporaryDirectory() as name:
        rows = [
            row(case, measure(case, Path(name) / str(number), seconds=seconds, launches=launches))
            for number, case in enumerate(QUICK if asked.quick else FULL)
        ]
    command.write({"cases": rows}, asked.json)


if __name__ == "__main__":
    main()
