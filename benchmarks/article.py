"""What an article on slow pinned memory measures, measured again beside what its way of measuring shows.

    python benchmarks/article.py --quick --json -
    python benchmarks/article.py --minutes 9 --budget 90s --json PATH

Each figure is a ratio with its 95 % interval (t-interval of log ratios of pairs) over rounds of fresh processes in
random order, all of `targets/article.py`:

scenario_1  pinning over none, by the article's clock, which starts once the batch has arrived, and by one around all
scenario_2  its large images, scaled down under a memory limit: whether they fit as float64, as which it makes them;
            what a monitor of the main process sees of what is held, and what it misses
scenario_3  two workers a CPU over the article's four: what many workers do to a pinned loader
three_way   pinning, and pinning with non_blocking, over none: synchronised after each copy and step, and over a window
optimal     `create_optimal_dataloader` over four workers: a worker a thread, pinned where there is a GPU
threads     an operation of the main thread behind a pinned loader, where torch.get_num_threads() was called before the
            loop over where it was not
statements  what the article says (article.yaml): how true it is, what covers it, and what `pindiag run --sweep` of
            samples/article_floats.py found of these causes here

The sweep comes first. Rounds go on while another one fits into what is left of --minutes, three at least; interrupted
or terminated, the figures are those of the rounds that were done. With --quick, two rounds of smaller images, and no
sweep: `found` is null.
"""

from __future__ import annotations

import json
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import command
import msgspec
import torch

from pindiag import api
from pindiag.launch.cpus import usable_cpus
from pindiag.stats import geometric_mean

HERE = Path(__file__).resolve().parent
TARGET = HERE / "targets" / "article.py"
SAMPLE = HERE.parent / "samples" / "article_floats.py"
WORKERS = 4
"""The article's own."""
Measured = Mapping[str, float | None]
Round = Mapping[str, Measured]
"""What each case measured."""


class Statement(msgspec.Struct, forbid_unknown_fields=True):
    """One of article.yaml."""

    kind: str
    says: str
    truth: str
    covers: list[str]


def statements() -> list[Statement]:
    """All of them, in order."""
    return msgspec.yaml.decode((HERE / "article.yaml").read_bytes(), type=list[Statement])


@dataclass(frozen=True)
class Size:
    """How large the images are, and how many."""

    samples: int
    floats: int = 224 * 224 * 3

    @property
    def words(self) -> list[str]:
        """What the target is told."""
        return ["--samples", str(self.samples), "--floats", str(self.floats)]


QUICK = Size(samples=256, floats=30_000)
QUICK_ROUNDS = 2
FEWEST_ROUNDS = 3
"""Of a full run, however long they take: with fewer there is no interval."""


@dataclass(frozen=True)
class Host:
    """What the article's rules look at."""

    threads: int
    cpus: int
    has_gpu: bool

    @property
    def many(self) -> int:
        """Two workers a CPU, more than the article's four in any case."""
        return 2 * max(self.cpus, WORKERS)


def this_host() -> Host:
    """The machine that this runs on."""
    return Host(torch.get_num_threads(), usable_cpus()[0], torch.cuda.is_available())


def cases(host: Host) -> dict[str, list[str]]:
    """What each process of a round is told, by its name."""
    four = ["ways", "--workers", str(WORKERS)]
    return {
        "none": four,
        "pinned": [*four, "--pin"],
        "non_blocking": [*four, "--pin", "--non-blocking"],
        "many": ["ways", "--workers", str(host.many), "--pin"],
        "optimal": ["ways", "--workers", str(host.threads), "--persistent", *(["--pin"] if host.has_gpu else [])],
        "looked": ["threads", "--pin", "--look"],
        "not_looked": ["threads", "--pin"],
    }


def measure(words: Sequence[str]) -> Measured:
    """One fresh process.

    Raises:
        SystemExit: it failed; what it said stands above.
    """
    print(" ".join(words), file=sys.stderr)
    asked = [sys.executable, "-W", "ignore", str(TARGET), *words]
    done = subprocess.run(asked, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"{TARGET.name} {words[0]} ended with status {done.returncode}")
    found: Measured = json.loads(done.stdout)
    return found


def one_round(number: int, host: Host, size: Size) -> Round:
    """All cases in random order; in every other round, the window comes before what is synchronised."""
    told = cases(host)
    order = random.Random(number).sample(list(told), len(told))
    found = {}
    for name in order:
        other_way = ["--window-first"] if told[name][0] == "ways" and number % 2 else []
        found[name] = measure([*told[name], *size.words, *other_way])
    return found


def rounds(host: Host, size: Size, *, fewest: int, until_s: float, clock: Callable[[], float]) -> Iterator[list[Round]]:
    """All rounds so far after each of them, while another one fits."""
    found: list[Round] = []
    longest_s = 0.0
    while len(found) < fewest or clock() + longest_s < until_s:
        began_s = clock()
        found.append(one_round(len(found), host, size))
        longest_s = max(longest_s, clock() - began_s)
        yield found


def ratio(found: Sequence[Round], case: str, over: str, figure: str) -> dict[str, object]:
    """How many times as fast a case is, by a figure in milliseconds."""
    pairs = [(each[case][figure], each[over][figure]) for each in found]
    mean = geometric_mean([old / new for new, old in pairs if new and old])
    return {"ratio": mean.value, "ci95": mean.ci95}


# ------------------------------------------------------------------------------------------------------- scenarios


def scenario_1(found: Sequence[Round], _: Host) -> dict[str, object]:
    """What pinning brings by either clock."""
    return {
        "by_the_articles_clock": ratio(found, "pinned", "none", "shown_ms"),
        "by_a_clock_around_all": ratio(found, "pinned", "none", "whole_ms"),
        "share_of_the_time_that_the_articles_clock_sees": [
            each[case]["shown_ms"] / each[case]["whole_ms"] for each in found for case in ("none", "pinned")
        ],
    }


def scenario_2(size: Size) -> Measured:
    """What images hold whose float64 would not fit."""
    return measure(["memory", *size.words, "--pin", "--workers", str(WORKERS)])


def scenario_3(found: Sequence[Round], host: Host) -> dict[str, object]:
    """What twice as many workers as CPUs bring."""
    return {"workers": host.many, **ratio(found, "many", "pinned", "window_ms")}


def three_way(found: Sequence[Round], _: Host) -> dict[str, object]:
    """Pinning and non_blocking, measured both ways."""
    named = {"pin_memory": "pinned", "pin_memory and non_blocking": "non_blocking"}
    return {
        name: {
            "synchronised": ratio(found, case, "none", "synchronised_ms"),
            "over_a_window": ratio(found, case, "none", "window_ms"),
        }
        for name, case in named.items()
    }


def optimal(found: Sequence[Round], host: Host) -> dict[str, object]:
    """The article's rule for the loader's arguments."""
    return {
        "workers": host.threads,
        "usable_cpus": host.cpus,
        **ratio(found, "optimal", "none", "window_ms"),
    }


def threads(found: Sequence[Round], _: Host) -> dict[str, object]:
    """What a look at the number of threads does to the main thread behind a pinned loader."""
    return {
        "threads_left": sorted({int(each["not_looked"]["threads"] or 0) for each in found}),
        **ratio(found, "looked", "not_looked", "exp_ms"),
    }


SCENES = (scenario_1, scenario_3, three_way, optimal, threads)
"""Those that compare processes of a round."""


# ------------------------------------------------------------------------------------------------------ statements


def judged(found: Mapping[str, str] | None) -> list[dict[str, object]]:
    """The article's statements, beside what a run found of the causes that cover them."""
    rows = []
    for each in statements():
        causes = [name.removeprefix("rule:") for name in each.covers if name.startswith("rule:")]
        here = None if found is None else {cause: found[cause] for cause in causes}
        rows.append({**msgspec.structs.asdict(each), "found": here})
    return rows


def sweep_words(budget: str, size: Size, folder: Path) -> list[str]:
    """What the sweep of the article's script is told."""
    told = [str(SAMPLE), "--sweep", "--budget", budget, "--output", str(folder)]
    return [*told, "--", "--samples", str(size.samples)]


def swept(budget: str, size: Size, folder: Path) -> dict[str, str] | None:
    """What `pindiag run --sweep` of the article's script says of each cause; None where it failed, as told above."""
    words = [sys.executable, "-m", "pindiag", "run", *sweep_words(budget, size, folder)]
    if subprocess.run(words, stdout=sys.stderr, check=False).returncode:
        return None
    return {finding.cause: finding.status for finding in api.load(folder).findings}


def origin() -> dict[str, object]:
    """Where, when and how the figures are made."""
    gpu = f"one {torch.cuda.get_device_name()}" if torch.cuda.is_available() else "no GPU"
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    return {
        "machine": f"{usable_cpus()[0]} CPU cores, {gpu}, {versions}",
        "date": datetime.now(timezone.utc).date().isoformat(),
        "command": " ".join(["benchmarks/article.py", *sys.argv[1:]]),
    }


def main() -> None:
    """Measure and print; interrupted, what was measured so far."""
    parser = command.parser(__doc__, quick="two rounds of smaller images, and no sweep")
    parser.add_argument("--minutes", type=float, default=9.0, help="for all, the sweep included (9)")
    parser.add_argument("--samples", type=int, default=960, help="images of the dataset (960)")
    parser.add_argument("--budget", default="90s", help="of the sweep (90s)")
    asked = parser.parse_args()
    until_s = time.monotonic() + 60 * asked.minutes
    size = QUICK if asked.quick else Size(asked.samples)
    host = this_host()
    with command.kept(asked.json) as figures, tempfile.TemporaryDirectory() as name:
        figures.update(origin())
        figures["statements"] = judged(None if asked.quick else swept(asked.budget, size, Path(name) / "run"))
        figures["scenario_2"] = scenario_2(size)
        fewest, until_s = (QUICK_ROUNDS, 0.0) if asked.quick else (FEWEST_ROUNDS, until_s)
        for found in rounds(host, size, fewest=fewest, until_s=until_s, clock=time.monotonic):
            figures["rounds"] = len(found)
            figures.update({scene.__name__: scene(found, host) for scene in SCENES})


if __name__ == "__main__":
    main()
