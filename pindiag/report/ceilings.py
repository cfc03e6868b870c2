"""Ceilings: what the loop reaches without some of its stages, and which of them is as slow as training."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

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
    marked: bool = False
    """The verdict speaks of it; where it speaks of none, training is as slow as this alone."""

    @property
    def rate(self) -> Estimate | None:
        """Samples/s, where it was measured."""
        return self.trial.samples_per_second if self.trial else None


@dataclasses.dataclass(frozen=True)
class Ceilings:
    """All ceilings of a run, and what they say."""

    rows: list[Ceiling]
    slow: frozenset[Stage]
    """Stages that are as slow as training by themselves."""
    title: str

    @property
    def few(self) -> list[Ceiling]:
        """The best of each kind, or what is marked of it: what a phone's first screen can hold."""
        best: dict[tuple[Stage, bool], Ceiling] = {}
        for row in sorted(self.rows, key=lambda row: (row.marked, row.rate.median if row.rate else 0.0)):
            best[row.stage, row.stage == "copy" and row.pinned] = row
        return sorted(best.values(), key=_place)

    def of(self, stage: Stage, *, pinned: bool | None = None) -> list[Ceiling]:
        """Measured rows of a stage."""
        return [row for row in self.rows if row.rate and row.stage == stage and pinned in (None, row.pinned)]


def ceilings(report: Report, finding: Finding | None) -> Ceilings | None:
    """The ceilings of a run; None where none was measured.

    Args:
        report: as it is shown.
        finding: the primary one, which says what is marked.
    """
    baseline = about.trial(report, report.baseline)
    ran = [one for one in report.trials if one.kind == "ablation"]
    if baseline is None or not any(one.samples_per_second for one in ran):
        return None
    own = baseline.configuration
    own = msgspec.structs.replace(own, pin_memory=own.pin_memory and about.has_gpu(report) is not False)
    rows = _rows(report, baseline, ran)
    spoken = _spoken_of(report, finding)
    slow = _as_slow(rows, own, speaks_of_pin_thread="pin_thread" in spoken)
    share = _share_of_the_step(rows)
    near = share is not None and share >= NEAR_THE_STEP
    alone = {"step"} if near else set(slow) if len(slow) == 1 else set()
    marked = {*spoken[:1], *(set(spoken) & set(slow))} or alone
    complete = all(row.rate for row in rows)
    return Ceilings(
        rows=[dataclasses.replace(row, marked=row.stage in marked and _is_own(row, own)) for row in rows],
        slow=frozenset(slow),
        title=_reaches_the_step(share) if near and share else _named(slow, complete=complete, workers=own.num_workers),
    )


def _rows(report: Report, baseline: Trial, ran: Sequence[Trial]) -> list[Ceiling]:
    """What was measured, and what a run on this machine should have beside it."""
    found = [_ceiling(one, report, baseline) for one in ran]
    copies = Counter(row.pinned for row in found if row.stage == "copy")
    rows = [_told_apart(row) if row.stage == "copy" and copies[row.pinned] > 1 else row for row in found]
    rows += [slot for slot in _slots(report, baseline) if not any(_fills(row, slot) for row in found)]
    return sorted(rows, key=_place)


def _spoken_of(report: Report, finding: Finding | None) -> list[Stage]:
    """Stages of the primary finding and of the other confirmed ones."""
    primary = [finding] if finding and finding.status in ("confirmed", "suspected") else []
    others = [one for one in report.findings if one.status == "confirmed" and one.consequence_of is None]
    return [_STAGE_OF[one.cause] for one in [*primary, *others] if one.cause in _STAGE_OF]


def _as_slow(rows: Sequence[Ceiling], own: Configuration, *, speaks_of_pin_thread: bool) -> dict[Stage, str]:
    """Stages that are as slow as training by themselves, with their words.

    Only what runs in the loop as written can hold it back, or the pin thread that the verdict says would.
    """
    found: dict[Stage, str] = {}
    for row in rows:
        runs = _runs(row, own) or (row.stage == "pin_thread" and speaks_of_pin_thread)
        if runs and row.ratio is not None and row.ratio <= AS_SLOW:
            found.setdefault(row.stage, _words(row))
    # What contains another stage that is as slow is not slow by itself.
    inside: Mapping[Stage, Stage] = {"copy": "step", "pin_thread": "loader"}
    return {stage: words for stage, words in found.items() if inside.get(stage) not in found}


def _is_own(row: Ceiling, own: Configuration) -> bool:
    """Whether a row of a marked stage is the one that is meant: all pin threads are, whatever feeds them."""
    if row.stage == "pin_thread":
        return True
    asked = row.trial.configuration.non_blocking if row.trial else None
    return _runs(row, own) and (row.stage != "copy" or asked is None or asked == (own.non_blocking is True))


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
    return Ceiling(_stage(trial, pinned), pinned, _label(trial, pinned), trial, trial.reason or "", ratio)


def _stage(trial: Trial, pinned: bool) -> Stage:
    if trial.ablation == "compute_only":
        return "step"
    if trial.ablation == "host_batch":
        return "copy"
    return "pin_thread" if pinned and trial.configuration.num_workers else "loader"


def _label(trial: Trial, pinned: bool) -> str:
    if trial.ablation == "compute_only":
        return names.ALONE
    if trial.ablation == "host_batch":
        return _copy(pinned)
    workers = names.workers(trial.configuration.num_workers)
    if not pinned:
        return f"Loader alone, {workers}"
    return f"Loader + pin thread, {workers}" if trial.configuration.num_workers else f"Loader + pinning, {workers}"


def _copy(pinned: bool) -> str:
    return f"Copy + step, {'pinned' if pinned else 'pageable'}"


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
        Ceiling("step", False, names.ALONE, reason=why("compute_only")),
        Ceiling("loader", False, "Loader alone", reason=why("loader_only")),
    ]
    if about.has_gpu(report) is False:
        return rows
    rows += [Ceiling("copy", pinned, _copy(pinned), reason=why("host_batch")) for pinned in (True, False)]
    if baseline.configuration.num_workers:
        rows.append(Ceiling("pin_thread", True, "Loader + pin thread", reason=why("loader_only")))
    return rows


def _fills(row: Ceiling, slot: Ceiling) -> bool:
    return row.stage == slot.stage and (row.pinned == slot.pinned or row.stage == "loader")


def _place(row: Ceiling) -> tuple[int, bool, int, bool]:
    """From the step alone to the loader with its pin thread, each with more workers after fewer."""
    own = row.trial.configuration if row.trial else None
    order = ("step", "copy", "loader", "pin_thread").index(row.stage)
    later = row.pinned != (row.stage == "copy")
    return order, later, own.num_workers if own else 0, bool(own and own.non_blocking)


def _share_of_the_step(rows: Sequence[Ceiling]) -> float | None:
    ratio = next((row.ratio for row in rows if row.stage == "step"), None)
    return 1 / ratio if ratio else None


def _reaches_the_step(share: float) -> str:
    if share >= 1:
        return "Neither loader nor copy is the limit: training is as fast as the step alone"
    return f"Neither loader nor copy is the limit: training reaches {figures.share(share)} of the step alone"


def _named(slow: Mapping[Stage, str], *, complete: bool, workers: int) -> str:
    if not slow and not complete:
        return "Each stage that was measured alone is faster than training"
    if not slow and not workers:
        return "Loading and training take turns: each alone is faster"
    if not slow:
        return "Each stage alone is faster than training: together they hold each other up"
    words = names.listing(list(slow.values()))
    if len(slow) == 1:
        return f"Only {words} is as slow as training"
    return f"{words[:1].upper()}{words[1:]} are as slow as training"


def _words(row: Ceiling) -> str:
    if row.stage == "copy":
        return f"the copy from {'pinned' if row.pinned else 'pageable'} memory"
    return {"step": "the step itself", "loader": "the loader", "pin_thread": "the pin thread"}[row.stage]
