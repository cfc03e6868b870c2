"""Whether a run that was killed or interrupted can go on: on the same machine, with the same script and torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pindiag.api import precheck
from pindiag.errors import ResumeRefused
from pindiag.journal import Journal
from pindiag.model import AnyRecord, LaunchStarted, RunSpec

ANEW = "Its blocks could not be compared with new ones: start a new run, or make the report of what there is: "


def is_complete(records: Sequence[AnyRecord]) -> bool:
    """Whether a run ended in order, so that nothing is left to do but its report."""
    ended = Journal(records).ended
    return ended is not None and ended.status == "ok"


def check(spec: RunSpec, records: Sequence[AnyRecord], directory: Path) -> None:
    """Refuse to go on with other things than were measured.

    Raises:
        ResumeRefused: the script, torch or the machine is another one than when the run began.
        UsageError, TargetNotFound, NoTorch: the interpreter, the script or torch is gone.
    """
    if not Path(spec.cwd).is_dir():
        raise ResumeRefused(f"The folder in which the run was started, {spec.cwd}, is gone.", "Bring it back.")
    python = precheck.interpreter(spec.python)
    place = spec.target if spec.module else precheck.script(spec.target)
    found = precheck.ask_interpreter(python, place, spec.module, cwd=spec.cwd)
    changed = next((what for what, same in _compared(spec, records, found) if not same), None)
    if changed is not None:
        raise ResumeRefused(f"{changed} since this run began.", f"{ANEW}`pindiag report {directory}`.")


def _compared(spec: RunSpec, records: Sequence[AnyRecord], found: precheck.Found) -> list[tuple[str, bool]]:
    """What must not change, with whether it is as it was; what was not noted is taken to be."""
    from pindiag.launch.machine import read_machine
    from pindiag.launch.nvml import Nvml

    journal = Journal(records)
    started = next((record for record in records if isinstance(record, LaunchStarted)), None)
    machine = journal.machine
    return [
        (f"{spec.target} was changed", spec.target_sha256 in (None, found.sha256)),
        ("torch was changed", started is None or _release(started.torch_version) == _release(found.torch_version)),
        ("the machine was changed", machine is None or machine.fingerprint == read_machine(Nvml()).fingerprint),
    ]


def _release(version: str) -> str:
    """Without the build, which a package's metadata may leave out."""
    return version.partition("+")[0]
