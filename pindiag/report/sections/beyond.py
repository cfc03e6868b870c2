"""Beyond arguments: tweaks, and the line of code that does the same in the script."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from pindiag import figures
from pindiag.model import Fix, Report, Trial, Tweak
from pindiag.report import names
from pindiag.report.about import WORTH


@dataclasses.dataclass(frozen=True)
class Change:
    """A tweak as the table shows it."""

    trial: Trial
    words: str
    code: list[str]
    """Lines to write into the script; empty where a rule proposes none."""
    location: str | None

    @property
    def gains(self) -> bool:
        """Whether its interval lies wholly above the script as written, by enough to be worth it."""
        gain = self.trial.versus_baseline
        return gain is not None and gain.ci95 is not None and gain.ci95[0] > 1 and gain.ratio >= WORTH


_WORDS: Mapping[Tweak, str] = {
    "intraop_threads": "The main thread keeps its threads",
    "lazy_sync": "No step waits for the device",
}


def changes(report: Report) -> list[Change]:
    """Every tweak that was tried."""
    proposed = {names.tweak_of(fix): fix for finding in report.findings for fix in finding.fixes}
    return [_change(one, one.tweak, proposed.get(one.tweak)) for one in report.trials if one.tweak is not None]


def _change(trial: Trial, tweak: Tweak, fix: Fix | None) -> Change:
    return Change(trial, _WORDS[tweak], _code(fix), fix.location if fix else None)


def _code(fix: Fix | None) -> list[str]:
    """What the fix adds."""
    if fix is None or not fix.patch:
        return (fix.snippet or "").splitlines() if fix else []
    lines = fix.patch.splitlines()
    return [line[1:].strip() for line in lines if line.startswith("+") and not line.startswith("+++")]


def heading(found: Sequence[Change]) -> str:
    """What a line of code brings."""
    gains = [gain for one in found if one.gains and (gain := one.trial.versus_baseline)]
    if not gains:
        return "Nothing that was tried beyond the loader's arguments is shown to be worth a line of code"
    best = max(gains, key=lambda gain: gain.ratio)
    return f"A line of code brings {figures.ratio_with_interval(best.ratio, best.ci95)}, with the arguments as written"
