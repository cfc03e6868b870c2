"""Runs a sample under the installed product and packs the run directory for tests/data.

    python benchmarks/record.py tests/data/cpu slow_reads --budget 60s
    python benchmarks/record.py tests/data/h200 article_floats --name live_article_floats -- --samples 1000

Packs what the run wrote (journals, rings, traces, sources, report.json, summary.md), so that a report can be made of it
again, and adds a line to recordings.toml beside the archive: when, where, with which torch and by which command.
Paths of the interpreter, of this checkout, of the home and of the run, and the host's name are replaced; the product
redacts its reports itself. Interrupted or terminated, it lets the run write its partial report, and packs that. A run
that the FOLDER of --runs has already is packed as it is, with the command that made it.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import signal
import socket
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from command import at_dashes
from sweeps import Place, add_runs, kept_in

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "samples"
PACKED = ("run.json", "sources.json", "report.json", "summary.md", "journal", "rings", "traces")
"""A report.html is made again from these."""
TEXT = {".json", ".jsonl", ".md"}
INDEX = "recordings.toml"
HEAD = "# One line a recording: made when and where, with which torch, by which command.\n"


def parser() -> argparse.ArgumentParser:
    """What can be asked."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("out", type=Path, help="folder for the archive and its line in recordings.toml")
    made.add_argument("sample", help="name of a script in samples/; its own arguments go after --")
    made.add_argument("--name", help="of the recording; default: the sample's")
    made.add_argument("--budget", default="5m")
    made.add_argument("--rounds", default="6")
    made.add_argument("--grid", help="what to sweep; default: pindiag's own choice")
    made.add_argument("--no-sweep", action="store_true", help="the script as written alone")
    made.add_argument("--no-verify", action="store_true", help="no fresh launches of the winner")
    made.add_argument("--fresh", action="store_true", help="every treatment in launches of its own")
    add_runs(made)
    return made


def options(asked: argparse.Namespace) -> list[str]:
    """The product's options that say what is measured."""
    chosen = ["--budget", asked.budget, "--rounds", asked.rounds]
    chosen += [] if asked.no_sweep else ["--sweep"]
    chosen += ["--no-verify"] if asked.no_verify else []
    chosen += ["--fresh"] if asked.fresh else []
    return chosen + (["--grid", asked.grid] if asked.grid else [])


def to_its_end(words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of pindiag before the user's eyes, and hand on the signals that would end this process.

    It has a session of its own, so that a terminal's Ctrl-C reaches it once.
    """
    command = [sys.executable, "-m", "pindiag", *words]
    with subprocess.Popen(command, cwd=folder, start_new_session=True) as child:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda received, _: child.send_signal(received))
        return subprocess.CompletedProcess(command, child.wait(), "", "")


def stand_ins(place: Place, name: str) -> dict[str, str]:
    """What names this machine, and what is written instead; what lies within another comes first."""
    replaced = {
        str(place.run): f"/runs/{name}",
        str(place.folder): "/project/samples",
        sys.executable: "/usr/bin/python3",
        sys.prefix: "/usr",
        str(ROOT): "/project",
        str(Path.home()): "/home/user",
        f'"{socket.gethostname()}"': '"host"',
    }
    usual = {sys.prefix: sys.prefix in ("/usr", "/"), str(Path.home()): Path.home() in (Path("/"), Path("/root"))}
    kept = {name: other for name, other in replaced.items() if not usual.get(name)}
    return dict(sorted(kept.items(), key=lambda each: -len(each[0])))


def neutral(content: bytes, replaced: Mapping[str, str]) -> bytes:
    """A text without what names this machine."""
    for name, other in replaced.items():
        content = content.replace(name.encode(), other.encode())
    return content


def read(path: Path, replaced: Mapping[str, str]) -> bytes:
    """What is packed of a file."""
    content = path.read_bytes()
    if path.suffix in TEXT:
        return neutral(content, replaced)
    if path.suffixes[-2:] == [".json", ".gz"]:
        return gzip.compress(neutral(gzip.decompress(content), replaced), mtime=0)
    return content


def pack(place: Place, archive: Path) -> None:
    """Write what there is of a run directory into an archive, whose folder has the archive's name."""
    run, name = place.run, archive.name.partition(".")[0]
    replaced = stand_ins(place, name)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for part in PACKED:
            found = run / part
            files = sorted(each for each in found.rglob("*") if each.is_file()) if found.is_dir() else [found]
            for path in filter(Path.is_file, files):
                content = read(path, replaced)
                member = tarfile.TarInfo(f"{name}/{path.relative_to(run)}")
                member.size = len(content)
                packed.addfile(member, io.BytesIO(content))


def line(name: str, run: Path, command: Sequence[str]) -> str:
    """What recordings.toml says of a recording."""
    spec = json.loads((run / "run.json").read_text())
    report = run / "report.json"
    environment = json.loads(report.read_text())["environment"] if report.is_file() else {}
    device = environment.get("gpu") or "no GPU"
    told = {
        "made": spec["started_utc"],
        "where": f"{device}, {spec['usable_cpus']} CPUs",
        "torch": environment.get("torch") or "unknown",
        "pindiag": spec["pindiag_version"],
        "command": " ".join(command),
    }
    return f"{name} = {{ {', '.join(f'{key} = {json.dumps(value)}' for key, value in told.items())} }}\n"


def note(index: Path, name: str, told: str) -> None:
    """Write a recording's line, in place of the one of an earlier recording of that name."""
    lines = index.read_text().splitlines(keepends=True) if index.exists() else [HEAD]
    kept = [each for each in lines[1:] if not each.startswith(f"{name} = ")]
    index.write_text("".join([HEAD, *sorted([*kept, told])]))


def record(asked: argparse.Namespace, arguments: Sequence[str], runs: Path) -> int:
    """Run the sample unless that is done, and pack what it left; the exit code of the run.

    Raises:
        SystemExit: the run is there, but not by which command it was made.
    """
    name = asked.name or asked.sample
    place = Place.of(SAMPLES / f"{asked.sample}.py", runs)
    made = place.ensure(options(asked), arguments, start=to_its_end, tells="-v")
    if made is None:
        raise SystemExit(f"the run of {asked.sample} is there, but not its command: {place.folder}/swept.json")
    if place.run.is_dir():
        pack(place, asked.out / f"{name}.tar.xz")
    if (place.run / "run.json").is_file():
        told = line(name, place.run, made.command_of(f"samples/{asked.sample}.py"))
        note(asked.out / INDEX, name, told)
    return made.exit_code


def main() -> int:
    """Record the sample named on the command line; the exit code is the run's."""
    own, arguments = at_dashes(sys.argv[1:])
    asked = parser().parse_args(own)
    if not (SAMPLES / f"{asked.sample}.py").is_file():
        parser().error(f"samples/ has no {asked.sample}.py")
    with kept_in(asked.runs) as runs:
        return record(asked, arguments, runs)


if __name__ == "__main__":
    sys.exit(main())
