"""Ceilings: what the loop reaches without some of its stages, and which of them is as slow as training."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from pindiag import figures
from pindiag.model import Configuration, Estimate, Finding, Report, Trial
from pindiag.report import about, names

Stage = Literal["step", "copy", "loader", "pin_thread"]

AS_SLOW = 1.25
"""A stage alone is as slow as training up to this ratio; beside the rest of the loop it runs slower than alone."""
NEAR_THE_STEP = 0.9
"""Share of the step alone from which on nothing that comes before it holds training back."""
_STAGE_OF: Mapping[str, Stage] = {
    **dict.fromkeys(names.TRANSFER_CAUSES, "copy"),
    **dict.fromkeys(("compute_bound", "launch_bound"), "step"),
    "pin_thread_bound": "pin_thread",
    **dict.fromkeys(("cpu_bound", "io_bound", "worker_contention", "worker_ipc_bound"), "loader"),
    **dict.fromkeys(("collate_bound", "prefetch_depth", "per_item_overhead"), "loader"),
}
"""The ceiling that shows a cause."""


@dataclasses.dataclass(frozen=True)
class Ceiling:
    """A row of the chart: the loop without some of its stages."""

    stage: Stage
    pinned: bool
    label: str
    trial: Trial | None = None
    reason: str = ""
    """Why it was not measured."""
    ratio: float | None = None
    """Over training as written."""

    @property
    def rate(self) -> Estimate | None:
        """Samples/s, where it was measured."""
        return self.trial.samples_per_second if self.trial else None


@dataclasses.dataclass(frozen=True)
class Ceilings:
    """All ceilings of a run, and what they say."""

    rows: list[Ceiling]
    limit: Stage | None
    """What the verdict speaks of; else the one stage that is as slow as training."""
    title: str

    @property
    def few(self) -> list[Ceiling]:
        """The best of each kind: what a phone's first screen can hold."""
        best: dict[tuple[Stage, bool], Ceiling] = {}
        for row in self.rows:
            kind = row.stage, row.stage == "copy" and row.pinned
            if kind not in best or _height(row) > _height(best[kind]):
                best[kind] = row
        return list(best.values())

    def of(self, stage: Stage, *, pinned: bool | None = None) -> list[Ceiling]:
        """Measured rows of a stage."""
        return [row for row in self.rows if row.rate and row.stage == stage and pinned in (None, row.pinned)]


def ceilings(report: Report, finding: Finding | None) -> Ceilings | None:
    """The ceilings of a run; None where none was measured.

    Args:
        report: as it is shown.
        finding: the primary one, which says what the accent marks.
    """
    baseline = about.trial(report, report.baseline)
    ran = [one for one in report.trials if one.kind == "ablation"]
    if baseline is None or not any(one.samples_per_second for one in ran):
        return None
    found = [_ceiling(one, report, baseline) for one in ran]
    copies = Counter(row.pinned for row in found if row.stage == "copy")
    rows = [_told_apart(row) if row.stage == "copy" and copies[row.pinned] > 1 else row for row in found]
    rows += [row for row in _slots(report, baseline) if not _has(found, row)]
    rows.sort(key=_place)
    spoken = _STAGE_OF.get(finding.cause) if finding and finding.status in ("confirmed", "suspected") else None
    share = _share_of_the_step(rows)
    slow = as_slow(rows, baseline, speaks_of_pin_thread=spoken == "pin_thread")
    if share is not None and share >= NEAR_THE_STEP:
        return Ceilings(rows, spoken or "step", _reaches_the_step(share, report))
    only = next(iter(slow)) if len(slow) == 1 else None
    return Ceilings(rows, spoken or only, _named(slow))


def as_slow(rows: Sequence[Ceiling], baseline: Trial, *, speaks_of_pin_thread: bool = False) -> dict[Stage, str]:
    """Stages that are as slow as training by themselves, with their words.

    Args:
        rows: the ceilings.
        baseline: only stages that run in it as written can hold it back.
        speaks_of_pin_thread: the verdict says that one would, so it counts as well.
    """
    own = baseline.configuration
    found: dict[Stage, str] = {}
    for row in rows:
        runs = _runs(row, own) or (row.stage == "pin_thread" and speaks_of_pin_thread)
        if runs and row.ratio is not None and row.ratio <= AS_SLOW:
            found.setdefault(row.stage, _words(row))
    # What contains another stage that is as slow is not slow by itself.
    for outer, inner in (("copy", "step"), ("pin_thread", "loader")):
        if inner in found:
            found.pop(outer, None)  # type: ignore[call-overload]
    return found


def _runs(row: Ceiling, own: Configuration) -> bool:
    """Whether the loop as written has that stage, in that form."""
    if row.stage in ("step", "copy"):
        return row.stage == "step" or row.pinned == own.pin_memory
    workers = row.trial is not None and row.trial.configuration.num_workers == own.num_workers
    return workers and (row.pinned == own.pin_memory or (row.stage == "loader" and own.num_workers > 0))


def _ceiling(trial: Trial, report: Report, baseline: Trial) -> Ceiling:
    own = trial.configuration
    rate, reference = trial.samples_per_second, baseline.samples_per_second
    ratio = trial.versus_baseline.ratio if trial.versus_baseline else None
    if ratio is None and rate and reference:
        ratio = rate.median / reference.median
    pinned = own.pin_memory and trial.ablation != "compute_only" and about.has_gpu(report) is not False
    return Ceiling(_stage(trial, pinned), pinned, _label(trial, pinned, report), trial, trial.reason or "", ratio)


def _stage(trial: Trial, pinned: bool) -> Stage:
    if trial.ablation == "compute_only":
        return "step"
    if trial.ablation == "host_batch":
        return "copy"
    return "pin_thread" if pinned and trial.configuration.num_workers else "loader"


def _label(trial: Trial, pinned: bool, report: Report) -> str:
    if trial.ablation == "compute_only":
        return names.alone(report)
    if trial.ablation == "host_batch":
        return _copy(pinned)
    workers = names.workers(trial.configuration.num_workers)
    if not pinned:
        return f"Loader alone, {workers}"
    return f"Loader + pin thread, {workers}" if trial.configuration.num_workers else f"Loader + pinning, {workers}"


def _copy(pinned: bool) -> str:
    return f"Copy + GPU, {'pinned' if pinned else 'pageable'}"


def _told_apart(row: Ceiling) -> Ceiling:
    """Where the same batch was copied both ways, which of them it is."""
    own = row.trial.configuration.non_blocking if row.trial else None
    if own is None:
        return row
    return dataclasses.replace(row, label=f"{row.label}, {'non_blocking' if own else 'blocking'}")


def _slots(report: Report, baseline: Trial) -> list[Ceiling]:
    """What a run on this machine should have: those that are missing keep their row."""

    def why(*keys: str) -> str:
        return about.reason(report, *(f"ceilings.{key}" for key in keys), "ceilings")

    rows = [
        Ceiling("step", False, names.alone(report), reason=why("compute_only")),
        Ceiling("loader", False, "Loader alone", reason=why("loader_only")),
    ]
    if about.has_gpu(report) is False:
        return rows
    rows += [Ceiling("copy", pinned, _copy(pinned), reason=why("host_batch")) for pinned in (True, False)]
    if baseline.configuration.num_workers:
        rows.append(Ceiling("pin_thread", True, "Loader + pin thread", reason=why("loader_only")))
    return rows


def _has(rows: Sequence[Ceiling], slot: Ceiling) -> bool:
    return any((row.stage, row.pinned) == (slot.stage, slot.pinned) for row in rows)


def _place(row: Ceiling) -> tuple[int, bool, int, bool]:
    """From the step alone to the loader with its pin thread, each with more workers after fewer."""
    own = row.trial.configuration if row.trial else None
    order = ("step", "copy", "loader", "pin_thread").index(row.stage)
    later = row.pinned != (row.stage == "copy")
    return order, later, own.num_workers if own else 0, bool(own and own.non_blocking)


def _height(row: Ceiling) -> float:
    return row.rate.median if row.rate else 0.0


def _share_of_the_step(rows: Sequence[Ceiling]) -> float | None:
    ratio = next((row.ratio for row in rows if row.stage == "step"), None)
    return 1 / ratio if ratio else None


def _reaches_the_step(share: float, report: Report) -> str:
    alone = names.alone(report).replace("Step", "step")
    return f"Neither loader nor copy is the limit: training reaches {figures.share(share)} of the {alone}"


def _named(slow: Mapping[Stage, str]) -> str:
    if not slow:
        return "No stage alone is as slow as training"
    words = names.listing(list(slow.values()))
    if len(slow) == 1:
        return f"Only {words} is as slow as training"
    return f"{words[:1].upper()}{words[1:]} are as slow as training"


def _words(row: Ceiling) -> str:
    if row.stage == "copy":
        return f"the copy from {'pinned' if row.pinned else 'pageable'} memory"
    return {"step": "the step itself", "loader": "the loader alone", "pin_thread": "the pin thread"}[row.stage]
