"""What pindiag reads of stages that take a known time.

    python benchmarks/truth.py --quick --json -
    python benchmarks/truth.py --rings tests/data/rings --json PATH

Prints {"cases": [{"name", "planted", "read", "error", "unit"}]}; error is what was read less what was planted, and is
to stay within 10 % of that or 0.3 ms.

targets/planted.py sleeps, or spins for a known CPU time, in its fetching, its collate function, the pickling of its
batches and its training step, with 0, 1 and 3 workers and each start method (--quick: each method once). In one launch
more its worker keeps a core busy and holds 300 MB. --rings keeps the workers' rings, and what they are to say.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import command
from fresh_launches import as_written, launch_all, spec_of

from pindiag import api
from pindiag.model import Report
from pindiag.store import RunDirectory

TARGET = Path(__file__).resolve().parent / "targets" / "planted.py"
BATCH = 4
"""Samples of a batch, as the target makes it."""


@dataclass(frozen=True)
class Planted:
    """One launch: times of a batch in milliseconds, sizes in bytes."""

    workers: int = 0
    start_method: str | None = None
    fetch_ms: float = 20.0
    collate_ms: float = 10.0
    hand_off_ms: float = 16.0
    step_ms: float = 0.0
    tick_ms: float = 0.0
    """Distance of the steps."""
    spin_ms: float = 0.0
    row_bytes: int = 25_000
    parcel_bytes: int = 8_000
    hold_bytes: int = 0

    @property
    def name(self) -> str:
        """Says how it loads."""
        if not self.workers:
            return "no workers"
        return f"{self.start_method} {self.workers}" + (" busy" if self.spin_ms else "")

    @property
    def arguments(self) -> list[str]:
        """What targets/planted.py is told."""
        told = ((name.replace("_", "-"), value) for name, value in asdict(self).items() if value is not None)
        return [word for name, value in told for word in (f"--{name}", str(value))]

    @property
    def idle_ms(self) -> float:
        """How long a worker waits for an index: one comes with every step that takes a batch of its own."""
        return self.workers * self.tick_ms - self.fetch_ms - self.collate_ms


FORKED = Planted(workers=1, start_method="fork", tick_ms=90)
QUICK = (
    Planted(step_ms=50),
    FORKED,
    Planted(workers=3, start_method="spawn", tick_ms=40),
    Planted(workers=1, start_method="forkserver", tick_ms=90),
    Planted(1, "fork", fetch_ms=0, collate_ms=0, hand_off_ms=0, spin_ms=30, hold_bytes=300_000_000),
)
FULL = (
    *QUICK,
    Planted(workers=3, start_method="fork", tick_ms=40),
    Planted(workers=1, start_method="spawn", tick_ms=90),
    Planted(workers=3, start_method="forkserver", tick_ms=40),
)

Case = tuple[str, float, float, str]
"""Name, planted, read, unit."""


class Reading:
    """What the report of one launch says.

    Raises:
        SystemExit: the launch measured nothing, or not what is asked for.
    """

    def __init__(self, planted: Planted, report: Report) -> None:
        self.planted = planted
        self._report = report
        self._facts = {fact.name: fact for fact in report.facts}

    def told(self, name: str) -> float | None:
        """The value of a fact; None where it has none."""
        fact = self._facts.get(name)
        return fact.value if fact is not None and isinstance(fact.value, (int, float)) else None

    def __call__(self, name: str) -> float:
        """The value of a fact."""
        value = self.told(name)
        if value is None:
            reason = self._facts[name].reason if name in self._facts else "it is no fact of this launch"
            error = self._report.target.error or self._report.target.exit
            raise SystemExit(f"{self.planted.name}: {name} was not measured: {reason}\n{error}")
        return value


def cases(readings: list[Reading]) -> Iterator[Case]:
    """What was planted beside what was read, launch by launch."""
    unburdened = next(read for read in readings if read.planted is FORKED)
    for read in readings:
        made = read.planted
        for name, planted, found, unit in _cases_of(read, unburdened):
            yield f"{name}, {made.name}", planted, found, unit


def _cases_of(read: Reading, unburdened: Reading) -> Iterator[Case]:
    made = read.planted
    yield "batch", BATCH * made.row_bytes / 1e3, read("batch_bytes") / 1e3, "kB"
    if made.spin_ms:
        yield from _of_burden(read, unburdened)
    elif made.workers:
        yield from _of_workers(read)
    else:
        yield "wait", made.fetch_ms + made.collate_ms, read("wait_ms"), "ms"
        yield "the rest of the step", made.step_ms, read("script_ms"), "ms"


def _of_workers(read: Reading) -> Iterator[Case]:
    made = read.planted
    yield "step", made.tick_ms, read("step_ms"), "ms"
    yield "fetch", made.fetch_ms, read("worker_fetch_ms"), "ms"
    yield "fetch of a sample", made.fetch_ms / BATCH, read("worker_fetch_sample_ms"), "ms"
    yield "collate", made.collate_ms, read("worker_collate_ms"), "ms"
    yield "hand-off", made.hand_off_ms, read("worker_hand_off_ms"), "ms"
    yield "idle", made.idle_ms, read("worker_idle_ms"), "ms"
    yield "through the pipe", made.parcel_bytes / 1e3, read("worker_sent_bytes") / 1e3, "kB"


def _of_burden(read: Reading, unburdened: Reading) -> Iterator[Case]:
    """Where other processes take the core away, the kernel says for how long."""
    made = read.planted
    had = 100 * (1 - (read.told("worker_run_delay_share") or 0))
    fetch_cpu_ms = read("worker_fetch_cpu_share") * (read("worker_fetch_ms") + read("worker_collate_ms"))
    yield "CPU time of fetching", made.spin_ms, fetch_cpu_ms, "ms"
    yield "core kept busy, psutil", had, 100 * read("worker_cpu_share"), "%"
    yield "core kept busy, rings", had, 100 * read("worker_cpus"), "%"
    held = read("worker_rss_bytes") - unburdened("worker_rss_bytes")
    yield "memory held, psutil", made.hold_bytes / 1e6, held / 1e6, "MB"


def measure(planted: Planted, folder: Path, *, seconds: float, rings: Path | None) -> Reading:
    """Launch the target once, and read its report."""
    journal = launch_all(spec_of(TARGET, planted.arguments), [as_written(seconds)], folder)
    run = RunDirectory.open(folder)
    blocks = journal.blocks("discover")
    if rings is not None and planted.workers and blocks:
        _keep(planted, run, rings, (blocks[0].started_ns, blocks[0].ended_ns))
    return Reading(planted, api.assemble(run)[0])


def _keep(planted: Planted, run: RunDirectory, rings: Path, counted_ns: tuple[int, int]) -> None:
    place = rings / planted.name.replace(" ", "-")
    place.mkdir(parents=True, exist_ok=True)
    for number, ring in enumerate(sorted(run.rings.glob("*.ring"))):
        shutil.copyfile(ring, place / f"{number}.ring")
    told = {"planted": {**asdict(planted), "idle_ms": planted.idle_ms}, "counted_ns": counted_ns}
    (place / "planted.json").write_text(json.dumps(told, indent=1) + "\n")


def row(case: Case) -> dict[str, object]:
    """One row of what is printed."""
    name, planted, read, unit = case
    return {
        "name": name,
        "planted": round(planted, 3),
        "read": round(read, 3),
        "error": round(read - planted, 3),
        "unit": unit,
    }


def main() -> None:
    """Measure and print."""
    parser = command.parser(__doc__, quick="each start method once, in less than a minute")
    parser.add_argument("--rings", type=Path, metavar="FOLDER", help="where the workers' rings are kept")
    asked = parser.parse_args()
    seconds = 1.2 if asked.quick else 3.0
    with tempfile.TemporaryDirectory() as name:
        readings = [
            measure(planted, Path(name) / str(number), seconds=seconds, rings=asked.rings)
            for number, planted in enumerate(QUICK if asked.quick else FULL)
        ]
    command.write({"cases": [row(case) for case in cases(readings)]}, asked.json)


if __name__ == "__main__":
    main()
