"""What an article on slow pinned memory measures, measured again beside what its way of measuring shows.

    python benchmarks/article.py --quick --json -
    python benchmarks/article.py --rounds 6 --budget 3m --json PATH

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

With --quick, two rounds of smaller images, and no sweep: `found` is null.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    """How much is measured."""

    rounds: int
    samples: int
    floats: int = 224 * 224 * 3

    @property
    def words(self) -> list[str]:
        """What the target is told."""
        return ["--samples", str(self.samples), "--floats", str(self.floats)]


QUICK = Size(rounds=2, samples=256, floats=50_000)


def measure(what: str, words: Sequence[str]) -> Measured:
    """One fresh process.

    Raises:
        SystemExit: it failed; what it said stands above.
    """
    asked = [sys.executable, "-W", "ignore", str(TARGET), what, *words]
    print(" ".join(asked[4:]), file=sys.stderr)
    done = subprocess.run(asked, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"{TARGET.name} {what} ended with status {done.returncode}")
    found: Measured = json.loads(done.stdout)
    return found


def rounds(what: str, cases: Mapping[str, Sequence[str]], size: Size, seed: int = 0) -> list[dict[str, Measured]]:
    """All cases in each round, in random order."""
    order, found = random.Random(seed), []
    for number in range(size.rounds):
        names = order.sample(list(cases), len(cases))
        other_way = ["--window-first"] if what == "ways" and number % 2 else []
        found.append({name: measure(what, [*size.words, *cases[name], *other_way]) for name in names})
    return found


def ratio(found: Sequence[Mapping[str, Measured]], case: str, over: str, figure: str) -> dict[str, object]:
    """How many times as fast a case is, by a figure in milliseconds."""
    pairs = [(each[case][figure], each[over][figure]) for each in found]
    mean = geometric_mean([old / new for new, old in pairs if new and old])
    return {"ratio": mean.value, "ci95": mean.ci95}


# ------------------------------------------------------------------------------------------------------- scenarios


def scenario_1(size: Size) -> dict[str, object]:
    """What pinning brings by either clock."""
    workers = ["--workers", str(WORKERS)]
    found = rounds("clock", {"off": workers, "on": [*workers, "--pin"]}, size)
    return {
        "by_the_articles_clock": ratio(found, "on", "off", "shown_ms"),
        "by_a_clock_around_all": ratio(found, "on", "off", "whole_ms"),
        "share_of_the_time_that_the_articles_clock_sees": [
            each[case]["shown_ms"] / each[case]["whole_ms"] for each in found for case in ("off", "on")
        ],
    }


def scenario_2(size: Size) -> Measured:
    """What images hold whose float64 would not fit."""
    words = ["--samples", str(size.samples), "--floats", str(size.floats), "--pin", "--workers", str(WORKERS)]
    return measure("memory", words)


def scenario_3(size: Size) -> dict[str, object]:
    """What twice as many workers as CPUs bring."""
    many = 2 * max(usable_cpus()[0], WORKERS)
    cases = {"four": ["--pin", "--workers", str(WORKERS)], "many": ["--pin", "--workers", str(many)]}
    return {"workers": many, **ratio(rounds("ways", cases, size), "many", "four", "window_ms")}


def three_way(size: Size) -> dict[str, object]:
    """Pinning and non_blocking, measured both ways."""
    own = ["--workers", str(WORKERS)]
    pinned = {"pin_memory": [*own, "--pin"], "pin_memory and non_blocking": [*own, "--pin", "--non-blocking"]}
    found = rounds("ways", {"none": own, **pinned}, size)
    return {
        case: {
            "synchronised": ratio(found, case, "none", "synchronised_ms"),
            "over_a_window": ratio(found, case, "none", "window_ms"),
        }
        for case in pinned
    }


def optimal(size: Size) -> dict[str, object]:
    """The article's rule for the loader's arguments."""
    threads = torch.get_num_threads()
    chosen = ["--workers", str(threads), "--persistent", *(["--pin"] if torch.cuda.is_available() else [])]
    cases = {"four": ["--workers", str(WORKERS)], "optimal": chosen}
    found = rounds("ways", cases, size)
    return {
        "workers": threads,
        "usable_cpus": usable_cpus()[0],
        **ratio(found, "optimal", "four", "window_ms"),
    }


def threads(size: Size) -> dict[str, object]:
    """What a look at the number of threads does to the main thread behind a pinned loader."""
    found = rounds("threads", {"looked": ["--pin", "--look"], "not": ["--pin"]}, size)
    return {
        "threads_left": sorted({int(each["not"]["threads"] or 0) for each in found}),
        **ratio(found, "looked", "not", "exp_ms"),
    }


SCENES = (scenario_1, scenario_2, scenario_3, three_way, optimal, threads)


# ------------------------------------------------------------------------------------------------------ statements


def judged(found: Mapping[str, str] | None) -> list[dict[str, object]]:
    """The article's statements, beside what a run found of the causes that cover them."""
    rows = []
    for each in statements():
        causes = [name.removeprefix("rule:") for name in each.covers if name.startswith("rule:")]
        here = None if found is None else {cause: found[cause] for cause in causes}
        rows.append({**msgspec.structs.asdict(each), "found": here})
    return rows


def swept(budget: str, folder: Path) -> dict[str, str]:
    """What `pindiag run --sweep` of the article's script says of each cause."""
    words = ["run", str(SAMPLE), "--sweep", "--budget", budget, "--out", str(folder)]
    subprocess.run([sys.executable, "-m", "pindiag", *words], stdout=sys.stderr, check=True)
    return {finding.cause: finding.status for finding in api.load(folder).findings}


def main() -> None:
    """Measure and print; interrupted, what was measured so far."""
    parser = command.parser(__doc__, quick="two rounds of smaller images, and no sweep")
    parser.add_argument("--rounds", type=int, default=6, help="of fresh processes (6)")
    parser.add_argument("--samples", type=int, default=1280, help="images of the dataset (1280)")
    parser.add_argument("--budget", default="3m", help="of the sweep (3m)")
    asked = parser.parse_args()
    size = QUICK if asked.quick else Size(asked.rounds, asked.samples)
    with command.kept(asked.json) as figures, tempfile.TemporaryDirectory() as name:
        figures["device"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
        for scene in SCENES:
            figures[scene.__name__] = scene(size)
        figures["statements"] = judged(None if asked.quick else swept(asked.budget, Path(name) / "run"))


if __name__ == "__main__":
    main()
