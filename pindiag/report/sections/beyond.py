"""Beyond arguments: tweaks, and the line of code that does the same in the script."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from pindiag import figures
from pindiag.model import Fix, Ratio, Report, Trial, Tweak
from pindiag.report import names


@dataclasses.dataclass(frozen=True)
class Change:
    """A tweak as the table shows it."""

    trial: Trial
    words: str
    gain: Ratio | None
    """Over the script as written."""
    over_own: float | None
    """Over its own configuration, where that is not the script as written."""
    helps: bool
    """The rule about it has confirmed its cause."""
    fix: Fix | None

    @property
    def code(self) -> list[str]:
        """Lines to write into the script; empty where a rule proposes none."""
        if self.fix is None or not self.fix.patch:
            return (self.fix.snippet or "").splitlines() if self.fix else []
        lines = self.fix.patch.splitlines()
        added = [line[1:].strip() for line in lines if line.startswith("+") and not line.startswith("+++")]
        return [line for line in added if line and not line.startswith("#")]


_WORDS: Mapping[Tweak, str] = {
    "intraop_threads": "The main thread keeps its threads",
    "lazy_sync": "No step waits for the device",
    "worker_threads": "Each worker has one native thread",
    "fewer_intraop_threads": "The main thread computes with half its threads",
    "worker_affinity": "Workers may run on all CPUs",
}


def changes(report: Report) -> list[Change]:
    """Every tweak that was tried."""
    return [_change(report, one, one.tweak) for one in report.trials if one.tweak is not None]


def _change(report: Report, trial: Trial, tweak: Tweak) -> Change:
    finding = names.finding_of(report, tweak)
    fixes = [fix for fix in (finding.fixes if finding else []) if names.makes(fix, trial.configuration)]
    own = untweaked(report, trial)
    elsewhere = own is not None and own.id != report.baseline
    return Change(
        trial=trial,
        words=f"{_WORDS[tweak]}, with {names.configuration(trial.configuration)}" if elsewhere else _WORDS[tweak],
        gain=trial.versus_baseline,
        over_own=over_own(trial, own) if elsewhere else None,
        helps=finding is not None and finding.status == "confirmed",
        fix=next((fix for fix in fixes if names.tweak_of(fix) == tweak), None),
    )


def untweaked(report: Report, trial: Trial) -> Trial | None:
    """The configuration that a tweak was tried on."""
    plain = [one for one in report.trials if one.kind == "configuration"]
    same = [one for one in plain if one.configuration == trial.configuration]
    return next((one for one in same if one.id == report.baseline), None) or next(iter(same), None)


def over_own(trial: Trial, own: Trial | None) -> float | None:
    """A tweak's gain over its own configuration, by way of the script as written."""
    if trial.versus_baseline is None or own is None or own.versus_baseline is None:
        return None
    return trial.versus_baseline.ratio / own.versus_baseline.ratio


def heading(found: Sequence[Change]) -> str:
    """What a line of code brings."""
    gains = [(gain, one) for one in found if one.helps and (gain := (one.fix.effect if one.fix else None) or one.gain)]
    if not gains:
        return "Nothing that was tried beyond the loader's arguments is shown to be worth a line of code"
    best, change = max(gains, key=lambda each: each[0].ratio)
    also = " with other settings" if change.over_own is not None else ""
    return f"A line of code{also} brings {figures.ratio_with_interval(best.ratio, best.ci95)}"
