"""What a live sweep costs beside fresh launches, and how much is lost by what it recommends.

    python benchmarks/sweep_cost.py --quick --json -
    python benchmarks/sweep_cost.py article_floats --budget 3m --json PATH -- --samples 1000

Prints {"cases": [{"sample", "wall_ratio", "regret", "regret_ci95", ...}]}.

wall_ratio: wall time of `pindiag run --sweep`, without the launches that verify (`wall_s` and `verification_s`), over
that of an exhaustive grid, which verifies nothing either: at least 12 configurations in `--rounds` rounds, each a fresh
launch with a block of the sweep's own counted length. Of these rounds `--launched` are really launched, and their wall
time is scaled to all (`grid`: configurations, rounds, launches that ran, rounds of them that are complete, wall time as
scaled). Interrupted, what ran is scaled; with --runs the same command goes on with the launches that are missing. With
--quick the sweep is one with --no-verify, and the other side is a run which gives every counted block of the sweep a
launch of its own, each reckoned from a single one that was measured.

regret: how much longer the recommended configuration takes than the best one of the grid: 0.03 is 3 %. The best one is
chosen on odd rounds of the grid and compared with the recommended one on even rounds, and the other way round, so that
no round judges what it has chosen; only complete rounds count. Where a tweak leads, the configuration that is
recommended beside it is judged. With --quick two targets consist of waits of known length, so that the truth is
arithmetic.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import command
from fresh_launches import as_written, end_if_interrupted, launch_all, launch_missing, of_treatment, ran, spec_of
from sweeps import Place, add_runs, kept_in

from pindiag.journal import Journal, Launch
from pindiag.model import Block, Configuration, LaunchOrder, Treatment
from pindiag.plan.grid import asked_treatments, parse_grid, whole_grid
from pindiag.plan.treatments import baseline_treatment, treatment
from pindiag.stats import Interval, Mean, Rate, compare, geometric_mean, paired_ratios
from pindiag.store import RunDirectory

HERE = Path(__file__).resolve().parent
SAMPLES = HERE.parent / "samples"
WAITS = HERE / "targets" / "waits.py"
FEWEST_IN_GRID = 12


@dataclass(frozen=True)
class Planted:
    """A target that consists of waits, in milliseconds a batch."""

    name: str
    workers: int
    grid: tuple[int, ...]
    fetch_ms: float
    unpack_ms: float
    step_ms: float
    start_s: float = 5.0

    @property
    def arguments(self) -> list[str]:
        """What targets/waits.py is told."""
        told = {
            "--start-s": self.start_s,
            "--fetch-ms": self.fetch_ms,
            "--unpack-ms": self.unpack_ms,
            "--step-ms": self.step_ms,
            "--workers": self.workers,
        }
        return [word for name, value in told.items() for word in (name, str(value))]

    def step_takes_ms(self, workers: int) -> float:
        """A whole step: without workers nothing is unpacked, with them fetching goes on beside the step."""
        if workers == 0:
            return self.fetch_ms + self.step_ms
        return max(self.fetch_ms / workers, self.unpack_ms + self.step_ms)

    def regret(self, recommended: Configuration) -> float:
        """How much longer a step takes than with the best number of workers that was swept."""
        best = min(map(self.step_takes_ms, self.grid))
        return self.step_takes_ms(recommended.num_workers) / best - 1


PLANTED = (
    Planted(name="slow store", workers=0, grid=(0, 2, 4), fetch_ms=80, unpack_ms=0, step_ms=20),
    Planted(name="dear to unpack", workers=1, grid=(0, 1, 2), fetch_ms=20, unpack_ms=80, step_ms=20),
)


@dataclass(frozen=True)
class Swept:
    """A live sweep that has ended."""

    wall_s: float
    configuration: Configuration
    """What it recommends."""
    recommended: str
    journal: Journal

    @property
    def blocks(self) -> list[Block]:
        """All that counted."""
        return self.journal.blocks("discover", "round")

    @property
    def around_s(self) -> float:
        """What the run took outside its launches: the product's own start, its report."""
        return self.wall_s - launched_s(self.journal.launches)

    @property
    def verification_s(self) -> float:
        """What the launches took that verify."""
        return launched_s(launch for launch in self.journal.launches if launch.purpose == "verify")

    @property
    def search_s(self) -> float:
        """What the run took without them."""
        return self.wall_s - self.verification_s


def launched_s(launches: Iterable[Launch]) -> float:
    """Seconds spent in launches."""
    return sum(launch.ended.seconds for launch in launches if launch.ended is not None)


def beside_block_s(journal: Journal) -> float:
    """What a launch takes beside its counted steps: the median over those that count and have no profiler window.

    Raises:
        SystemExit: there is none.
    """
    plain = (launch for launch in journal.launches if launch.order is not None and not launch.order.profile)
    found = [
        launch.ended.seconds - sum(block.seconds for block in launch.all(Block))
        for launch in plain
        if launch.ended is not None and launch.measured
    ]
    if not found:
        raise SystemExit("no fresh launch gave a block that counts")
    return statistics.median(found)


def reckoned_s(blocks: Sequence[Block], beside_s: float) -> float:
    """What launches of their own take for these blocks."""
    return sum(beside_s + block.seconds for block in blocks)


def choose(rates: Sequence[Rate], baseline: str) -> str:
    """The fastest in the rounds given."""
    ratios = {trial: mean.value for trial, mean in compare(rates, baseline).items()}
    return max({baseline: 1.0, **ratios}.items(), key=lambda item: item[1])[0]


def complete_rounds(launches: Iterable[Launch], size: int) -> set[int]:
    """The rounds in which all of a grid of this size ran."""
    return {turn for turn, count in Counter(launch.round for launch in launches).items() if count >= size}


def regret(journal: Journal, recommended: str, rounds: Collection[int]) -> tuple[float | None, Interval | None]:
    """How much longer the recommended configuration takes than the best one, in rounds that did not choose it.

    Only the rounds named count. None where there is only one, or none that has both.
    """
    competing = {name for name, made in journal.treatments.items() if made.competes}
    rates = [rate for rate in journal.rates("discover", "round") if rate.trial in competing and rate.round in rounds]
    halves = [[rate for rate in rates if rate.round % 2 == parity] for parity in (0, 1)]
    if not all(halves):
        return None, None
    baseline = journal.baseline_id or ""
    ratios = [
        ratio
        for choosing, judging in (halves, halves[::-1])
        for ratio in _best_over(choose(choosing, baseline), recommended, judging)
    ]
    return _beyond_one(geometric_mean(ratios)) if ratios else (None, None)


def _best_over(best: str, recommended: str, judging: Sequence[Rate]) -> list[float]:
    """Ratios in the judging rounds; 1 where both are the same."""
    if best == recommended:
        return [1.0] * len({rate.round for rate in judging if rate.trial == best})
    return paired_ratios(judging, recommended).get(best, [])


def exhaustive(
    baseline: Configuration, cpus: int, accelerator: str | None, against: str | None = None
) -> list[Treatment]:
    """The script as written and the whole grid, or the one named, with more prefetching until at least 12 are compared.

    Raises:
        GridError: the grid named is impossible.
    """
    if against is None:
        grid = whole_grid(baseline, cpus, accelerator)
    else:
        grid = asked_treatments(parse_grid(against), baseline)
    found = {made.id: made for made in (baseline_treatment(baseline), *grid)}
    workers = sorted({made.configuration.num_workers for made in found.values()} - {0})
    further = (
        treatment(baseline, {"num_workers": n, "prefetch_factor": p}) for p in (8, 1, 16, 3, 32) for n in workers
    )
    for made in further:
        if len(found) >= FEWEST_IN_GRID:
            break
        found.setdefault(made.id, made)
    return list(found.values())


def in_rounds(grid: Sequence[Treatment], rounds: int, seconds: float) -> list[LaunchOrder]:
    """One launch of each in every round, in random order; the very first one finds the loader."""
    turns = [
        (number, made) for number in range(1, rounds + 1) for made in random.Random(number).sample(grid, len(grid))
    ]
    return [of_treatment(made, number, place, seconds) for place, (number, made) in enumerate(turns, start=1)]


def _beyond_one(mean: Mean) -> tuple[float, Interval | None]:
    return mean.value - 1, None if mean.ci95 is None else (mean.ci95[0] - 1, mean.ci95[1] - 1)


# ------------------------------------------------------------------------------------------------------ measuring


def sweep(place: Place, words: Sequence[str], arguments: Sequence[str]) -> Swept:
    """Sweep as a user does, unless that is done.

    Raises:
        SystemExit: it failed, or recommends nothing, or nobody wrote down how long it took.
    """
    made = place.ensure(["--sweep", *words], arguments)
    if made is None:
        raise SystemExit(f"the sweep of {place.name} is there, but not how long it took: {place.folder}/swept.json")
    if made.exit_code != 0:
        raise SystemExit(f"the sweep of {place.name} failed with {made.exit_code}: {made.said}")
    directory = RunDirectory.open(place.run)
    recommendation = directory.read_report().recommendation
    if recommendation is None:
        raise SystemExit(f"the sweep of {place.name} recommends nothing")
    return Swept(made.wall_s, recommendation.configuration, recommendation.trial, Journal(directory.records()))


def case(
    name: str, swept: Swept, fresh_s: float | None, lost: tuple[float | None, Interval | None]
) -> dict[str, object]:
    """One row of what is printed; without the other side's wall time there is no ratio."""
    return {
        "sample": name,
        "wall_ratio": None if fresh_s is None else swept.search_s / (swept.around_s + fresh_s),
        "regret": lost[0],
        "regret_ci95": lost[1],
        "recommended": swept.recommended,
        "wall_s": swept.search_s,
        "verification_s": swept.verification_s,
        "blocks": len(swept.blocks),
    }


def quick_words(target: Planted) -> list[str]:
    """A budget in which every treatment has its turns."""
    grid = f"num_workers={','.join(map(str, target.grid))}"
    return ["--no-verify", "--budget", "27s", "--rounds", "4", "--grid", grid]


def quick(folder: Path) -> list[dict[str, object]]:
    """Sweep the planted targets while one fresh launch is measured; they wait far more than they compute."""
    target = PLANTED[0]
    with ThreadPoolExecutor() as pool:
        places = [Place.of(WAITS, folder / each.name) for each in PLANTED]
        sweeps = [
            pool.submit(sweep, place, quick_words(each), each.arguments)
            for each, place in zip(PLANTED, places, strict=True)
        ]
        fresh = launch_all(spec_of(WAITS, target.arguments), [as_written(1.0)], folder / "fresh")
        ended = [each.result() for each in sweeps]
    beside_s = beside_block_s(fresh)
    cases = []
    for each, swept in zip(PLANTED, ended, strict=True):
        lost = each.regret(swept.configuration)
        cases.append(case(each.name, swept, reckoned_s(swept.blocks, beside_s), (lost, (lost, lost))))
    return cases


def full(
    name: str, asked: argparse.Namespace, arguments: Sequence[str], runs: Path
) -> tuple[dict[str, object], Journal]:
    """Sweep a sample, then launch an exhaustive grid of it: its row, and the grid's launches.

    Raises:
        SystemExit: the sweep failed, or recommends nothing.
    """
    place = Place.of(SAMPLES / f"{name}.py", runs)
    named = ["--grid", asked.grid] if asked.grid else []
    swept = sweep(place, ["--budget", asked.budget, "--rounds", str(asked.rounds), *named], arguments)
    found, spec = swept.journal.chosen, spec_of(place.script, place.arguments)
    if found is None:
        raise SystemExit(f"the sweep of {name} found no loader")
    grid = exhaustive(found.configuration, spec.usable_cpus, found.accelerator, asked.against)
    known = {made.id for made in grid}
    grid += [
        made for made in swept.journal.treatments.values() if made.id == swept.recommended and made.id not in known
    ]
    fresh = launch_missing(spec, in_rounds(grid, asked.launched, block_s(swept.journal)), place.folder / "grid")
    return against_grid(name, swept, fresh, len(grid), asked.rounds), fresh


def against_grid(name: str, swept: Swept, fresh: Journal, size: int, rounds: int) -> dict[str, object]:
    """The row of a sweep beside what ran of so many rounds of a grid of this size."""
    launches = ran(fresh)
    complete = complete_rounds(launches, size)
    whole_s = launched_s(launches) / len(launches) * size * rounds if launches else None
    figures = {
        "configurations": size,
        "rounds": rounds,
        "launches": len(launches),
        "launched_rounds": len(complete),
        "wall_s": whole_s,
    }
    lost = regret(fresh, swept.recommended, complete)
    return case(name, swept, whole_s, lost) | {"grid": figures, "tried": tried(swept.journal)}


def line(row: Mapping[str, object]) -> str:
    """What is said of a sample when its sweep and its grid are done."""
    return "{sample}: {recommended}, wall_ratio {wall_ratio}, regret {regret} {regret_ci95}".format_map(row)


def block_s(journal: Journal) -> float:
    """The counted length that the sweep asked for, in the median of its blocks."""
    return statistics.median(order.seconds for launch in journal.launches for order in launch.block_orders)


def tried(journal: Journal) -> int:
    """Configurations that ran, the script as written among them."""
    ran = {journal.trial(block.trial) for block in journal.blocks("discover", "round")}
    return sum(journal.treatments[name].competes for name in ran)


def main() -> None:
    """Measure and print; interrupted, what was measured so far."""
    parser = command.parser(__doc__, quick="two targets with planted waits, in less than a minute")
    parser.add_argument("samples", nargs="*", help="names of scripts in samples/; what follows -- are their arguments")
    parser.add_argument("--budget", default="5m")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--launched", type=int, default=6, help="rounds of the exhaustive grid that are launched")
    parser.add_argument("--grid", help="what to sweep; default: pindiag's own choice")
    parser.add_argument("--against", help="what the exhaustive grid holds; default: all that pindiag could try there")
    add_runs(parser)
    own, arguments = command.at_dashes(sys.argv[1:])
    asked = parser.parse_args(own)
    if not asked.quick and not asked.samples:
        parser.error("name samples, or give --quick")
    with command.kept(asked.json) as figures, kept_in(asked.runs) as runs:
        cases = quick(runs) if asked.quick else []
        figures["cases"] = cases
        for sample in [] if asked.quick else asked.samples:
            row, fresh = full(sample, asked, arguments, runs)
            cases.append(row)
            print(line(row), file=sys.stderr)
            end_if_interrupted(fresh)


if __name__ == "__main__":
    main()
