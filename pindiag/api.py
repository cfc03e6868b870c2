"""The same as the command line, for Python: run a script, load a run, make its report again.

Here, and only here, the layers meet: `plan` decides what `launch` runs, `analysis` derives facts, `rules` judge
them, `fixes` edit, `report` writes.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pindiag import __version__
from pindiag.errors import ExitCode, NoLoader, NoTorch, TargetNotFound, UsageError
from pindiag.model import (
    SCHEMA_VERSION,
    AnyRecord,
    Block,
    Drawing,
    Factor,
    Finding,
    LaunchEnded,
    LaunchOrder,
    LoaderChosen,
    LoaderMade,
    Report,
    RunSpec,
    TargetFailed,
    TreatmentApplied,
    Verdict,
    Window,
)
from pindiag.store import RunDirectory, TraceEvent, read_trace

if TYPE_CHECKING:
    from pindiag.model import Analysis

OLDEST_TORCH = (2, 6)
_PRECHECK = """
import importlib.metadata, importlib.util, json, sys
target, module, cwd = json.loads(sys.argv[1])
def torch():
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None
def problem():
    if module:
        sys.path.insert(0, cwd)
        try:
            found = importlib.util.find_spec(target)
        except (ImportError, ValueError) as error:
            return str(error)
        return None if found else f"No module named {target}"
    try:
        with open(target, "rb") as source:
            compile(source.read(), target, "exec")
    except (SyntaxError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
print(json.dumps([torch(), problem()]))
"""


@dataclasses.dataclass(frozen=True)
class Step:
    """What a launch that begins will measure."""

    now: str
    done: int
    total: int
    seconds_left: float | None
    best: str | None
    """The leading treatment and its ratio, once there is one."""


class Observer(Protocol):
    """Is told what happens while a run goes on."""

    def step(self, step: Step) -> None:
        """A launch begins."""

    def note(self, text: str) -> None:
        """A detail."""

    def say(self, text: str) -> None:
        """Something that matters."""


class Silence:
    """An observer that says nothing."""

    def step(self, step: Step) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""

    def say(self, text: str) -> None:
        """Say nothing."""


def run(
    target: str,
    *,
    module: bool = False,
    args: Sequence[str] = (),
    sweep: bool = False,
    grid: str | None = None,
    budget_s: float = 300.0,
    rounds: int = 6,
    steps: int | None = None,
    seed: int = 0,
    device: str | None = None,
    loader: str | None = None,
    wait_s: float = 600.0,
    python: str | None = None,
    verify: bool = True,
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
        TargetNotFound, NoTorch, GridError, OutputRefused: before anything is started.
        NoLoader: the script ended without training from a DataLoader.
    """
    from pindiag.launch.cpus import usable_cpus
    from pindiag.launch.session import Session
    from pindiag.plan.grid import parse_grid

    progress = progress or Silence()
    interpreter = _interpreter(python)
    if grid is not None:
        parse_grid(grid)
    if loader is not None:
        _check_place(loader)
    place = target if module else _script(target)
    _precheck(interpreter, place, module)
    started = datetime.now(timezone.utc)
    spec = RunSpec(
        target=place,
        module=module,
        args=list(args),
        cwd=os.getcwd(),
        python=interpreter,
        started_utc=started.isoformat(timespec="seconds"),
        command=["pindiag", *sys.argv[1:]],
        sweep=sweep,
        grid=grid,
        budget_s=budget_s,
        rounds=rounds,
        steps=steps,
        seed=seed,
        device=device,
        loader=loader,
        wait_s=wait_s,
        verify=verify,
        keep_cap_bytes=keep_cap_bytes,
        usable_cpus=usable_cpus()[0],
        pindiag_version=__version__,
    )
    directory = RunDirectory.create(output or _default_output(place, module, started), force=force)
    directory.write_spec(spec)
    session = Session(spec, directory, on_record=_teller(progress))
    session.run(_decider(spec, progress))
    _keep_sources(directory, spec, session.records)
    _refuse_without_loader(spec, session.records, directory)
    return directory.path, _write(directory, show_paths=show_paths)


def report(run_directory: Path, *, show_paths: bool = False) -> Report:
    """Make report.html, summary.md and report.json of a run again, from its records.

    What a killed run left of the user's files is put back first.

    Raises:
        NotARun: the folder holds no run of this schema version.
    """
    from pindiag.launch.kept import settle_unsettled

    directory = RunDirectory.open(run_directory)
    directory.read_spec()
    settle_unsettled(directory)
    return _write(directory, show_paths=show_paths)


def load(run_directory: Path) -> Report:
    """The report that a run has written.

    Raises:
        NotARun: there is none of this schema version.
    """
    return RunDirectory.open(run_directory).read_report()


def exit_code(made: Report, *, fail_on: str | None = None) -> ExitCode:
    """The exit code that `pindiag run` gives for a report."""
    levels = ["low", "medium", "high"]
    if made.target.status == "interrupted":
        return ExitCode.INTERRUPTED
    if made.target.status == "failed":
        return ExitCode.TARGET_FAILED
    if fail_on is not None:
        hit = {level for level in levels if levels.index(level) >= levels.index(fail_on)}
        if any(f.severity in hit for f in made.findings if f.status in ("confirmed", "suspected")):
            return ExitCode.FAIL_ON
    return ExitCode.OK


# ------------------------------------------------------------------------------------------------- before a run


def _interpreter(python: str | None) -> str:
    if python is None:
        return sys.executable
    import shutil

    found = shutil.which(python)
    if found is None:
        raise UsageError(f"There is no interpreter {python}.", "Name one that has torch with --python PATH.")
    return os.path.abspath(found)


def _check_place(place: str) -> None:
    file, _, line = place.rpartition(":")
    if not file or not line.isdigit():
        raise UsageError(f"--loader {place} is not FILE:LINE.", "Name the line that makes the DataLoader: train.py:14.")


def _script(target: str) -> str:
    path = Path(target)
    if path.is_dir():
        raise TargetNotFound(f"{target} is a directory.", "Name the script that trains.")
    if not path.is_file():
        raise TargetNotFound(f"There is no file {target}.", "Name the script that trains, or a module with -m.")
    return str(path.resolve())


def _precheck(interpreter: str, target: str, module: bool) -> None:
    """Ask the interpreter itself, without importing torch: a second that a wrong call does not cost."""
    question = json.dumps([target, module, os.getcwd()])
    answer = subprocess.run(
        [interpreter, "-c", _PRECHECK, question], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if answer.returncode != 0:
        last = (answer.stderr.strip().splitlines() or ["no output"])[-1]
        raise UsageError(f"{interpreter} does not run Python code: {last}.", "Name another one with --python PATH.")
    torch_version, problem = json.loads(answer.stdout.splitlines()[-1])
    if problem is not None:
        raise TargetNotFound(f"{target} cannot be run as Python: {problem}.", "Name the script that trains.")
    if torch_version is None:
        raise NoTorch(f"{interpreter} has no torch.", "Name the interpreter that trains with --python PATH.")
    if tuple(int(part) for part in torch_version.split(".")[:2]) < OLDEST_TORCH:
        raise NoTorch(f"{interpreter} has torch {torch_version}; pindiag needs 2.6 or newer.", "Use a newer torch.")


def _default_output(target: str, module: bool, started: datetime) -> Path:
    name = target.rpartition(".")[2] if module else Path(target).stem
    base = Path("pindiag-runs") / f"{name}-{started.strftime('%Y%m%dT%H%M%SZ')}"
    number = 1
    path = base
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}-{number}")
    return path


# ------------------------------------------------------------------------------------------------- while it runs


def _decider(spec: RunSpec, progress: Observer) -> Callable[[Sequence[AnyRecord]], LaunchOrder | None]:
    from pindiag.plan.schedule import leading, next_order, remaining

    def decide(records: Sequence[AnyRecord]) -> LaunchOrder | None:
        order = next_order(spec, records)
        if order is not None:
            left = remaining(spec, records)
            best = leading(spec, records)
            progress.step(
                Step(
                    now=_what(order),
                    done=left.done,
                    total=max(left.total, left.done + 1),
                    seconds_left=left.seconds_left,
                    best=None if best is None else f"{best[0]} {best[1]:.2f} ×",
                )
            )
        return order

    return decide


def _what(order: LaunchOrder) -> str:
    if order.treatment is None:
        return "the script as written"
    if order.purpose == "verify":
        return f"verifying {order.treatment.id}"
    return f"round {order.blocks[0].round}: {order.treatment.id}"


def _teller(progress: Observer) -> Callable[[AnyRecord], None]:
    def tell(record: AnyRecord) -> None:
        if isinstance(record, LoaderChosen):
            progress.note(f"training loader: {record.key.location} ({record.why})")
        elif isinstance(record, Block):
            rate = record.samples / record.seconds if record.seconds else 0.0
            progress.note(f"{record.trial}: {rate:.0f} samples/s over {record.steps} steps ({record.status})")
        elif isinstance(record, TreatmentApplied):
            for change, reason in record.refused.items():
                progress.say(f"{record.trial}: {change} could not be changed: {reason}")
        elif isinstance(record, LaunchEnded) and record.status == "failed":
            progress.say(f"launch {record.launch} failed: {record.reason or record.exit}")

    return tell


def _keep_sources(directory: RunDirectory, spec: RunSpec, records: Sequence[AnyRecord]) -> None:
    """Keep the files that a patch may edit, so that the report can be made again after they changed."""
    places = {spec.target} if not spec.module else set()
    for record in records:
        if isinstance(record, LoaderChosen):
            places.add(record.key.location.rpartition(":")[0])
        elif isinstance(record, Block):
            places.update(site.location.rpartition(":")[0] for site in record.transfers)
    sources = {}
    for place in sorted(places):
        try:
            sources[place] = Path(place).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
    directory.write(directory.sources, json.dumps(sources).encode())


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


# ------------------------------------------------------------------------------------------------- from disk


def _write(directory: RunDirectory, *, show_paths: bool) -> Report:
    from pindiag.report import redact_report, render_markdown, write_html

    spec = directory.read_spec()
    made, drawing = assemble(directory)
    made = redact_report(made, spec, show_paths=show_paths)
    directory.write_report(made)
    directory.write(directory.summary_md, render_markdown(made, spec).encode())
    write_html(made, drawing, spec, directory.report_html)
    return made


def assemble(directory: RunDirectory) -> tuple[Report, Drawing]:
    """Everything a run means, before redaction: analysis, findings with their fixes, verdict.

    Raises:
        NotARun: the folder holds no run of this schema version.
    """
    from pindiag import rules
    from pindiag.analysis import analyse

    spec = directory.read_spec()
    records = directory.records()
    analysis = analyse(spec, records, directory.worker_batches(), _traces(directory, records), directory.places())
    inputs = rules.Inputs.of(analysis)
    findings = _with_fixes(rules.judge(inputs), analysis, records, _sources(directory), _root(spec))
    return _report(analysis, findings, rules.verdict(findings, inputs), rules.factors(inputs)), analysis.drawing


def _traces(directory: RunDirectory, records: Sequence[AnyRecord]) -> Mapping[str, list[TraceEvent] | str]:
    traces: dict[str, list[TraceEvent] | str] = {}
    for record in records:
        if isinstance(record, Window) and record.trace is not None:
            try:
                traces[record.trial] = read_trace(directory.path / record.trace)
            except (OSError, ValueError) as error:
                traces[record.trial] = f"the trace could not be read: {error}"
    return traces


def _root(spec: RunSpec) -> str:
    """The folder that places in the report are relative to: where the command ran, or else where the script lies."""
    inside = spec.module or spec.target.startswith(spec.cwd.rstrip("/") + "/")
    return spec.cwd if inside else os.path.dirname(spec.target)


def _sources(directory: RunDirectory) -> dict[str, str]:
    try:
        loaded: dict[str, str] = json.loads(directory.sources.read_bytes())
    except (OSError, ValueError):
        return {}
    return loaded


def _with_fixes(
    findings: Sequence[Finding], analysis: Analysis, records: Sequence[AnyRecord], sources: Mapping[str, str], root: str
) -> list[Finding]:
    from pindiag import fixes

    loader = None if analysis.loader is None else analysis.loader.chosen
    transfers = sorted({site.location for r in records if isinstance(r, Block) for site in r.transfers})
    return [
        fixes.complete(finding, loader=loader, transfers=transfers, sources=sources, root=root) for finding in findings
    ]


def _report(analysis: Analysis, findings: list[Finding], verdict: Verdict, factors: list[Factor]) -> Report:
    measured = {name: getattr(analysis, name) for name in analysis.__struct_fields__ if name != "drawing"}
    return Report(schema_version=SCHEMA_VERSION, verdict=verdict, findings=findings, factors=factors, **measured)
