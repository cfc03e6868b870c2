"""`pindiag run --verify-patch`: what the recommended patch gives, measured in fresh launches with it in the files.

The files themselves are not touched: each launch is handed the texts of both sides, whichever of them stands there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from pindiag import __version__
from pindiag.api import precheck
from pindiag.api.applying import changes, recommended
from pindiag.api.conduct import Observer, Silence, Step, teller
from pindiag.api.outcome import assemble, read_sources, write
from pindiag.errors import NothingToApply
from pindiag.journal import Journal
from pindiag.model import (
    AnyRecord,
    Configuration,
    LaunchEnded,
    LaunchOrder,
    LoaderKey,
    NextBlocks,
    PatchedSources,
    Report,
    RunSpec,
)
from pindiag.store import RunDirectory


def verify_patch(
    run_directory: Path, *, budget_s: float = 300.0, show_paths: bool = False, progress: Observer | None = None
) -> tuple[Path, Report]:
    """Measure the script as it was measured against the same with the recommended patch, and write the run's report.

    Launches alternate between the two, at least four pairs, until the interval is narrow or the budget is spent. They
    are a run of their own in the run's folder `patched`; an earlier one is replaced.

    Args:
        run_directory: the run that recommends the change.
        budget_s: time to measure, start-up apart.
        show_paths: do not redact the report.
        progress: is told what happens.

    Returns:
        The run directory, and the report with `patch_verification`.

    Raises:
        NotARun, RunInUse, NothingToApply, SourceChanged: as `pindiag apply`.
        PlatformRefused, UsageError, TargetNotFound, NoTorch: before anything is started.
    """
    precheck.platform(sys.platform)

    from pindiag.launch.session import Session
    from pindiag.launch.tenancy import tenancy

    progress = progress or Silence()
    directory = RunDirectory.open(run_directory)
    with tenancy(directory.path):
        spec = _spec(directory, budget_s)
        inner = RunDirectory.create(directory.patched, force=True)
        inner.write_spec(spec)
        Session(spec, inner, on_record=teller(progress)).run(PatchConductor(spec, progress))
        return directory.path, write(directory, show_paths=show_paths)


def _spec(directory: RunDirectory, budget_s: float) -> RunSpec:
    from pindiag.launch.cpus import usable_cpus

    asked = directory.read_spec()
    if not Path(asked.cwd).is_dir():
        raise NothingToApply(f"The folder in which the run was started, {asked.cwd}, is gone.", "Bring it back.")
    python = precheck.interpreter(asked.python)
    place = asked.target if asked.module else precheck.script(asked.target)
    precheck.ask_interpreter(python, place, asked.module, cwd=asked.cwd)
    return msgspec.structs.replace(
        asked,
        patch=_patch(directory, asked),
        sweep=False,
        fresh=True,
        budget_s=budget_s,
        started_utc=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        command=["pindiag", *sys.argv[1:]],
        usable_cpus=usable_cpus()[0],
        pindiag_version=__version__,
    )


def _patch(directory: RunDirectory, asked: RunSpec) -> PatchedSources:
    report, _ = assemble(directory)
    fix, diff = recommended(report)
    made = list(changes(diff, read_sources(directory), asked))
    before = {change.place: change.before for change in made}
    after = {change.place: change.after for change in made}
    found = Journal(directory.records()).chosen
    loader = None if found is None else _moved(found.key, before, after)
    left = {name: fix.changes[name] for name in fix.by_hand if name in Configuration.__struct_fields__}
    lives_on = fix.changes.get("persistent_workers") is True
    return PatchedSources(
        summary=fix.summary, before=before, after=after, loader=loader, by_hand=left, lives_on=lives_on
    )


def _moved(key: LoaderKey, before: dict[str, str], after: dict[str, str]) -> LoaderKey:
    from pindiag.fixes.carried_out import moved

    place, _, line = key.location.rpartition(":")
    if place not in before:
        return key
    return msgspec.structs.replace(key, location=f"{place}:{moved(before[place], after[place], int(line))}")


class PatchConductor:
    """Answers what `launch` asks while a patch is verified, and tells the observer what begins.

    Args:
        spec: what is measured.
        progress: is told.
    """

    def __init__(self, spec: RunSpec, progress: Observer) -> None:
        self._spec = spec
        self._progress = progress

    def next_launch(self, records: Sequence[AnyRecord]) -> LaunchOrder | None:
        """The next launch, None where enough is known."""
        from pindiag.plan.patched import LAUNCHES, next_pair

        order = next_pair(self._spec, records)
        if order is not None:
            done = sum(isinstance(record, LaunchEnded) for record in records)
            now = "with the patch" if order.patched else "as it was measured"
            self._progress.step(Step(now=now, done=done, total=max(LAUNCHES, done + 1), seconds_left=None, best=None))
        return order

    def next_blocks(self, _: Sequence[AnyRecord]) -> NextBlocks:
        """Nothing: a fresh launch has done all that it was started for."""
        return NextBlocks()
