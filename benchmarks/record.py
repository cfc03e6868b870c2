"""Sweeps samples with the installed product and packs the run directories for tests/data.

    python benchmarks/record.py --budget 3m OUT article_floats -- --samples 2000

What is packed is what the run wrote: journals, rings, traces, sources and reports; neither the probe's copy nor kept
files. Nothing in it is changed: paths and names are redacted by the product when it writes its reports.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
from pathlib import Path

SAMPLES = Path(__file__).parents[1] / "samples"
PACKED = ("run.json", "sources.json", "report.html", "report.json", "summary.md", "journal", "rings", "traces")


def main() -> int:
    """Record the samples named on the command line; the exit code is the last failure's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder for the run directories and their archives")
    parser.add_argument("sample", help="name of a script in samples/")
    parser.add_argument("--budget", default="5m")
    parser.add_argument("--rounds", default="6")
    parser.add_argument("--grid", help="what to sweep; default: pindiag's own choice")
    parser.add_argument("arguments", nargs="*", help="arguments of the sample, after --")
    asked = parser.parse_args()
    run = asked.out / asked.sample
    words = ["run", str(SAMPLES / f"{asked.sample}.py"), "--sweep", "-v", "-o", str(run), "--force"]
    words += ["--budget", asked.budget, "--rounds", asked.rounds, *(["--grid", asked.grid] if asked.grid else [])]
    done = subprocess.run([sys.executable, "-m", "pindiag", *words, "--", *asked.arguments], check=False)
    with tarfile.open(asked.out / f"{asked.sample}.tar.xz", "w:xz") as archive:
        for name in PACKED:
            if (run / name).exists():
                archive.add(run / name, arcname=f"{asked.sample}/{name}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
