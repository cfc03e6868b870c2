"""What the command line costs: `pindiag --help`, and `pindiag report` of a full sweep, imports included.

    python benchmarks/cli_cost.py --json -

Prints {"help_ms", "python_ms", "report_s", "report_bytes"}: medians of fresh processes of this interpreter.
python_ms is a bare interpreter's start. The report is that of a synthetic run of 24 configurations x 8 rounds.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import command
from synthetic_run import write_run

BARE = (sys.executable, "-c", "pass")
PINDIAG = (sys.executable, "-m", "pindiag")
CONFIGURATIONS, ROUNDS = 24, 8


def wall_s(words: tuple[str, ...], folder: Path) -> float:
    """Seconds that a command takes; its output is shown only if it fails."""
    start = time.perf_counter()
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)} failed with {done.returncode}:\n{done.stdout}{done.stderr}")
    return seconds


def measure(folder: Path, *, starts: int, reports: int) -> dict[str, float]:
    """Alternate the two starts, so that both meet the same machine, then make the report some times."""
    run = write_run(folder / "run", configurations=CONFIGURATIONS, rounds=ROUNDS)
    wall_s((*PINDIAG, "--help"), folder)  # compiles the bytecode, as an installation does
    pairs = [(wall_s((*PINDIAG, "--help"), folder), wall_s(BARE, folder)) for _ in range(starts)]
    helps, bares = zip(*pairs, strict=True)
    report_s = statistics.median(wall_s((*PINDIAG, "report", str(run.path), "-q"), folder) for _ in range(reports))
    return {
        "help_ms": round(1000 * statistics.median(helps), 1),
        "python_ms": round(1000 * statistics.median(bares), 1),
        "report_s": round(report_s, 3),
        "report_bytes": run.report_html.stat().st_size,
    }


def main() -> None:
    """Measure and print."""
    args = command.parser(__doc__, quick="fewer repetitions").parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), starts=5 if args.quick else 15, reports=2 if args.quick else 5)
    command.write(figures, args.json)


if __name__ == "__main__":
    main()
