"""Runs a sample under the installed product and packs the run directory for tests/data.

    python benchmarks/record.py --budget 3m OUT article_floats -- --samples 2000

What is packed is what the run wrote: journals, rings, traces, sources and reports; neither the probe's copy nor kept
files. Nothing in it is changed: paths and names are redacted by the product when it writes its reports. Interrupted or
terminated, it lets the run write its partial report, and packs that.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from command import at_dashes

SAMPLES = Path(__file__).parents[1] / "samples"
PACKED = ("run.json", "sources.json", "report.html", "report.json", "summary.md", "journal", "rings", "traces")


def parser() -> argparse.ArgumentParser:
    """What can be asked."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("out", type=Path, help="folder for the run directories and their archives")
    made.add_argument("sample", help="name of a script in samples/; its own arguments go after --")
    made.add_argument("--budget", default="5m")
    made.add_argument("--rounds", default="6")
    made.add_argument("--grid", help="what to sweep; default: pindiag's own choice")
    made.add_argument("--no-sweep", action="store_true", help="the script as written alone")
    made.add_argument("--fresh", action="store_true", help="every treatment in launches of its own")
    return made


def words(asked: argparse.Namespace, run: Path, arguments: Sequence[str]) -> list[str]:
    """The product's command line."""
    options = ["-v", "-o", str(run), "--force", "--budget", asked.budget, "--rounds", asked.rounds]
    options += [] if asked.no_sweep else ["--sweep"]
    options += ["--fresh"] if asked.fresh else []
    options += ["--grid", asked.grid] if asked.grid else []
    return ["run", str(SAMPLES / f"{asked.sample}.py"), *options, "--", *arguments]


def to_its_end(command: Sequence[str]) -> int:
    """Run a command and hand on the signals that would end this process; its exit code.

    It has a session of its own, so that a terminal's Ctrl-C reaches it once.
    """
    with subprocess.Popen(command, start_new_session=True) as child:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda received, _: child.send_signal(received))
        return child.wait()


def pack(run: Path, archive: Path) -> None:
    """Write what there is of a run directory into an archive."""
    with tarfile.open(archive, "w:xz") as packed:
        for name in PACKED:
            if (run / name).exists():
                packed.add(run / name, arcname=f"{run.name}/{name}")


def main() -> int:
    """Record the sample named on the command line; the exit code is the run's."""
    own, arguments = at_dashes(sys.argv[1:])
    asked = parser().parse_args(own)
    run = asked.out / asked.sample
    code = to_its_end([sys.executable, "-m", "pindiag", *words(asked, run, arguments)])
    if run.is_dir():
        pack(run, asked.out / f"{asked.sample}.tar.xz")
    return code


if __name__ == "__main__":
    sys.exit(main())
