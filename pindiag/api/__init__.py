"""The same as the command line, for Python: run a script, load a run, make its report again, compare two.

    from pathlib import Path
    from pindiag import api

    run_directory, report = api.run("train.py", sweep=True, budget_s=120)
    print(report.verdict.headline)
    earlier = api.load(Path("pindiag-runs/train-20260101T120000Z"))
    compared = api.compare(Path("pindiag-runs/train-20260101T120000Z"), run_directory)
    print(compared.throughput[0].ratio, compared.throughput[0].ci95)

Every failure is a `pindiag.errors.PindiagError` with a code, a cause and a next step. Nothing is printed.

Here, and only here, the layers meet: `plan` decides what `launch` runs, `analysis` derives facts, `rules` judge
them, `fixes` edit, `report` writes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from pindiag import __version__
from pindiag.api import precheck, resumption
from pindiag.api.comparison import compare
from pindiag.api.conduct import Conductor, Observer, Silence, Step, teller
from pindiag.api.demonstration import demo
from pindiag.api.found import Found, runs
from pindiag.api.outcome import assemble, keep_sources, write
from pindiag.api.patching import verify_patch
from pindiag.api.ticketing import Ticket, ticket
from pindiag.errors import ExitCode, NoLoader, OutputRefused
from pindiag.model import AnyRecord, LaunchEnded, LoaderChosen, LoaderMade, Report, RunSpec, TargetFailed
from pindiag.redact import whoami
from pindiag.store import RunDirectory

__all__ = [
    "Found",
    "Observer",
    "Silence",
    "Step",
    "Ticket",
    "assemble",
    "compare",
    "demo",
    "exit_code",
    "load",
    "report",
    "resume",
    "run",
    "runs",
    "ticket",
    "verify_patch",
]


def run(
    target: str,
    *,
    module: bool = False,
    args: Sequence[str] = (),
    sweep: bool = False,
    grid: str | None = None,
    batch_sizes: Sequence[int] | None = None,
    budget_s: float = 300.0,
    rounds: int = 6,
    steps: int | None = None,
    seed: int = 0,
    device: str | None = None,
    loader: str | None = None,
    wait_s: float = 600.0,
    python: str | None = None,
    verify: bool = True,
    fresh: bool = False,
    exhaustive: bool = False,
    keep_cap_bytes: int = 1 << 30,
    output: Path | None = None,
    force: bool = False,
    show_paths: bool = False,
    progress: Observer | None = None,
) -> tuple[Path, Report]:
    """Measure a script and write its report; the arguments are those of `pindiag run`.

    Returns:
        The run directory, and the report that was written into it.

    Raises:
        PlatformRefused, TargetNotFound, NoTorch, GridError, OutputRefused: before anything is started.
        NoLoader: the script ended without training from a DataLoader.
    """
    precheck.platform(sys.platform)

    from pindiag.launch.cpus import usable_cpus
    from pindiag.launch.tenancy import is_held, tenancy
    from pindiag.plan.grid import parse_grid

    progress = progress or Silence()
    python = precheck.interpreter(python)
    if grid is not None:
        parse_grid(grid)
    if loader is not None:
        precheck.check_place(loader)
    place = target if module else precheck.script(target)
    found = precheck.ask_interpreter(python, place, module)
    started = datetime.now(timezone.utc)
    spec = RunSpec(
        target=place,
        module=module,
        args=list(args),
        cwd=os.getcwd(),
        python=python,
        started_utc=started.isoformat(timespec="seconds"),
        command=["pindiag", *sys.argv[1:]],
        sweep=sweep or batch_sizes is not None,
        grid=grid,
        batch_sizes=None if batch_sizes is None else list(batch_sizes),
        budget_s=budget_s,
        rounds=rounds,
        steps=steps,
        seed=seed,
        device=device,
        loader=loader,
        wait_s=wait_s,
        verify=verify,
        fresh=fresh,
        exhaustive=exhaustive,
        keep_cap_bytes=keep_cap_bytes,
        usable_cpus=usable_cpus()[0],
        pindiag_version=__version__,
        **whoami(),
        target_sha256=found.sha256,
    )
    path = output or _default_output(place, module, started)
    if path.is_dir() and is_held(path):
        raise OutputRefused(f"Another pindiag is running in {path}.", "Choose another -o, or wait for its end.")
    directory = RunDirectory.create(path, force=force)
    with tenancy(directory.path):
        directory.write_spec(spec)
        return directory.path, _measure(spec, directory, progress, show_paths=show_paths)


def resume(run_directory: Path, *, show_paths: bool = False, progress: Observer | None = None) -> tuple[Path, Report]:
    """Go on with a run that was killed or interrupted, as it was asked for, and write its report.

    What it measured counts, and so does the time that this took. Of a run that is complete only the report is made
    again.

    Raises:
        PlatformRefused, NotARun, RunInUse, ResumeRefused, TargetNotFound, NoTorch: before anything is started.
        NoLoader: the script ended without training from a DataLoader.
    """
    precheck.platform(sys.platform)

    from pindiag.launch.resume import prepare
    from pindiag.launch.tenancy import tenancy

    directory = RunDirectory.open(run_directory)
    spec = directory.read_spec()
    with tenancy(directory.path):
        records = directory.records()
        if resumption.is_complete(records):
            return directory.path, write(directory, show_paths=show_paths)
        resumption.check(spec, records, directory.path)
        prepare(directory)
        return directory.path, _measure(spec, directory, progress or Silence(), show_paths=show_paths)


def _measure(spec: RunSpec, directory: RunDirectory, progress: Observer, *, show_paths: bool) -> Report:
    from pindiag.launch.session import Session

    session = Session(spec, directory, on_record=teller(progress))
    session.run(Conductor(spec, progress))
    keep_sources(directory, spec, session.records)
    _refuse_without_loader(spec, session.records, directory)
    return write(directory, show_paths=show_paths)


def report(run_directory: Path, *, show_paths: bool = False) -> Report:
    """Make report.html, summary.md and report.json of a run again, from its records.

    What a killed run left of the user's files is put back first.

    Raises:
        NotARun: the folder holds no run of this schema version.
    """
    from pindiag.launch.kept import settle_unsettled
    from pindiag.launch.tenancy import is_held

    directory = RunDirectory.open(run_directory)
    directory.read_spec()
    if not is_held(directory.path):
        settle_unsettled(directory)
    return write(directory, show_paths=show_paths)


def load(run_directory: Path) -> Report:
    """The report that a run has written.

    Raises:
        NotARun: there is none of this schema version.
    """
    return RunDirectory.open(run_directory).read_report()


def exit_code(made: Report, *, fail_on: str | None = None, of_patch: bool = False) -> ExitCode:
    """The exit code that `pindiag run` gives for a report; with `of_patch` the one of `--verify-patch`."""
    levels = ["low", "medium", "high"]
    patch = made.patch_verification if of_patch else None
    status = made.target.status if patch is None else patch.status
    if status == "interrupted":
        return ExitCode.INTERRUPTED
    if status == "failed":
        return ExitCode.TARGET_FAILED
    if fail_on is not None:
        hit = {level for level in levels if levels.index(level) >= levels.index(fail_on)}
        if any(f.severity in hit for f in made.findings if f.status in ("confirmed", "suspected")):
            return ExitCode.FAIL_ON
    return ExitCode.OK


def _default_output(target: str, module: bool, started: datetime) -> Path:
    name = target.rpartition(".")[2] if module else Path(target).stem
    base = Path("pindiag-runs") / f"{name}-{started.strftime('%Y%m%dT%H%M%SZ')}"
    number = 1
    path = base
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}-{number}")
    return path


def _refuse_without_loader(spec: RunSpec, records: Sequence[AnyRecord], directory: RunDirectory) -> None:
    if any(isinstance(record, LoaderChosen | TargetFailed) for record in records):
        return
    ended = [record for record in records if isinstance(record, LaunchEnded)]
    if not ended or ended[-1].status != "ok":
        return
    seen = sorted({record.key.location for record in records if isinstance(record, LoaderMade)})
    what = f"Its loaders: {', '.join(seen)}." if seen else "It made no torch DataLoader."
    asked = f" from the loader at {spec.loader}" if spec.loader else " from a DataLoader"
    raise NoLoader(
        f"{spec.target} ended without training{asked}. {what}",
        f"Name the loader that trains with --loader FILE:LINE. Its output is in {directory.target_log}.",
    )
