"""The first screen: how sure, the patch, what to do next, and the chart that carries the verdict."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from typing import Literal

from pindiag import figures
from pindiag.model import Estimate, Finding, Fix, Recommendation, Report, RunSpec, Trial
from pindiag.report import about, conclusions, names
from pindiag.report.about import ASKED_ROUNDS
from pindiag.report.ceilings import Ceiling, Ceilings
from pindiag.report.charts import ceilings as ceilings_chart
from pindiag.report.charts import reached, stages
from pindiag.report.charts._svg import Chart, Row
from pindiag.report.charts.bars import Bar
from pindiag.report.charts.stages import Steps
from pindiag.report.rows import median_rate

FIRST_SCREEN_ROWS = 12
SHORT_PATCH_LINES = 16
_HUNK = re.compile(r"^@@ ", re.MULTILINE)
_CHANGED = ("num_workers", "pin_memory", "non_blocking", "persistent_workers")


@dataclasses.dataclass(frozen=True)
class Mark:
    """One of the marks: how sure."""

    level: str
    word: str
    more: str = ""


@dataclasses.dataclass(frozen=True)
class Patch:
    """A change as the reader applies it."""

    heading: str
    first: list[tuple[str, str]]
    """Class and text of each line of the first hunk."""
    rest: list[tuple[str, str]]
    is_diff: bool = True


# --------------------------------------------------------------------------------------------------- what to change


def main_fix(report: Report) -> Fix | None:
    """The change that the verdict speaks of first: a line of code, or a finding's that leads to the recommendation."""
    recommended = report.recommendation
    if recommended is not None and recommended.tweak is not None:
        return recommended.fix
    finding = names.primary_finding(report)
    if recommended is None or recommended.trial == report.baseline:
        return _stated(finding)
    ordered = [one for one in report.findings if one is not finding and one.status in ("confirmed", "suspected")]
    fixes = [fix for one in ([finding] if finding else []) + ordered for fix in one.fixes]
    wanted = next((fix for fix in fixes if _leads_to(fix, report)), None)
    return wanted or recommended.fix


def _stated(finding: Finding | None) -> Fix | None:
    """What a confirmed finding asks for where no configuration is recommended: a small gain, or pinning for nothing."""
    if finding is None or finding.status != "confirmed":
        return None
    safe = [fix for fix in finding.fixes if fix.safety.status != "failed"]
    if finding.cause == "pin_without_accelerator":
        return next(iter(safe), None)
    return next((fix for fix in safe if fix.effect is not None and fix.effect.kind != "predicted"), None)


def _leads_to(fix: Fix, report: Report) -> bool:
    """Whether the change makes the recommended configuration out of the baseline."""
    baseline = about.trial(report, report.baseline)
    if baseline is None or report.recommendation is None:
        return False
    wanted = report.recommendation.configuration
    changed = [name for name in _CHANGED if getattr(wanted, name) != getattr(baseline.configuration, name)]
    return all(fix.changes.get(name) == getattr(wanted, name) for name in changed)


def patch(fix: Fix | None) -> Patch | None:
    """The change as a diff, or in words where no diff can hold it."""
    if fix is None or not (fix.patch or fix.snippet):
        return None
    if not fix.patch:
        place = f" at {fix.location}" if fix.location else ""
        return Patch(f"Change by hand{place}", _patch_lines(fix.snippet or "", diff=False), [], is_diff=False)
    files = re.findall(r"^\+\+\+ (?:b/)?(\S+)", fix.patch, re.MULTILINE)
    heading = f"Patch for {names.listing(files)}" if files else "Patch"
    hunks = [match.start() for match in _HUNK.finditer(fix.patch)]
    long = fix.patch.count("\n") > SHORT_PATCH_LINES and len(hunks) > 1
    cut = hunks[1] if long else len(fix.patch)
    return Patch(heading, _patch_lines(fix.patch[:cut]), _patch_lines(fix.patch[cut:]))


def by_hand(fix: Fix | None) -> list[tuple[str, str]]:
    """What a patch does not hold: the code of each change, and why it is left to the reader."""
    if fix is None or not fix.patch:
        return []
    parts = [line.partition("  # ") for line in (fix.snippet or "").splitlines()]
    return [(code, why) for code, _, why in parts]


def _patch_lines(text: str, *, diff: bool = True) -> list[tuple[str, str]]:
    return [(_patch_class(line) if diff else "", line) for line in text.splitlines()]


def _patch_class(line: str) -> str:
    if line.startswith(("---", "+++")):
        return ""
    return {"+": "add", "-": "del", "@": "at"}.get(line[:1], "")


def why_nothing(report: Report, rows: Sequence[Row]) -> str:
    """Why no change is recommended."""
    if not rows:
        return "nothing was measured"
    if about.no_difference(report):
        return "the settings as written are as good as any that was tried"
    if len(rows) == 1:
        return "only the script as written was measured"
    if report.target.status == "interrupted":
        return "the run was interrupted"
    unsafe = any(fix.safety.status == "failed" for one in report.findings for fix in one.fixes)
    return "what is faster is not safe" if unsafe else "no gain was shown"


def next_step(report: Report, spec: RunSpec) -> tuple[str, str, bool] | None:
    """What to do next: words, the command or experiment, and whether it is a command."""
    if report.target.status == "failed":
        return None
    if not spec.sweep:
        return "To try other settings:", about.command(spec, "--sweep"), True
    if report.target.status == "interrupted":
        return "To measure it to the end:", about.command(spec, "--sweep"), True
    if about.no_difference(report):
        return None
    if report.blocks and about.rounds(report) < ASKED_ROUNDS and report.verification is None:
        return "For a firm figure:", about.command(spec, "--sweep", _more(report, spec)), True
    finding = names.primary_finding(report)
    if finding is not None and finding.status == "suspected" and finding.experiment:
        return "Would settle it:", finding.experiment, finding.experiment.startswith("pindiag ")
    return None


def _more(report: Report, spec: RunSpec) -> str:
    """The option that brings the rounds that pindiag asks for."""
    if spec.rounds < ASKED_ROUNDS:
        return f"--rounds {ASKED_ROUNDS}"
    factor = -(-ASKED_ROUNDS // max(about.rounds(report), 1))
    return f"--budget {math.ceil(spec.budget_s * factor / 60)}m"


# --------------------------------------------------------------------------------------------------- how sure


def marks(report: Report, finding: Finding | None) -> list[Mark]:
    """How sure: the cause, the gain, its verification, where live and fresh disagree, how busy the machine was."""
    found = [
        _cause_mark(finding),
        *_gain_marks(report),
        _patch_mark(report),
        _disagreement_mark(report),
        _busy_mark(report),
    ]
    return [mark for mark in found if mark]


def _gain_marks(report: Report) -> list[Mark]:
    """The gain and its verification: one mark where both say the same."""
    gain, verified = _gain_mark(report), _verification_mark(report)
    if verified.level == "full" and about.verified(report) == about.leading(report) and _is_verified(report):
        return [dataclasses.replace(verified, word=gain.word)]
    return [gain, verified]


def _is_verified(report: Report) -> bool:
    """Whether the gain that is stated first is that of the fresh pairs."""
    made, fix = report.recommendation, main_fix(report)
    if made is None or made.tweak is None:
        return made is not None and made.firmness == "verified"
    return fix is not None and fix.effect is not None and fix.effect.kind == "verified"


def _cause_mark(finding: Finding | None) -> Mark:
    if finding is None:
        return Mark("none", "No cause shown")
    if finding.cause == "script_error":
        return Mark("full", "Failure confirmed", "by the script's own exception")
    if finding.cause == "worker_crash":
        return Mark("full", "Failure confirmed", "by what a worker died of")
    if finding.cause == "no_difference" and finding.status == "confirmed":
        return Mark("full", "No difference", "shown by the intervals of all configurations")
    if finding.cause == "no_difference":
        return Mark("none", "No cause shown")
    words = {
        "confirmed": Mark("full", "Cause confirmed", "by an experiment" if _tested(finding) else "by its fact"),
        "suspected": Mark("half", "Cause suspected:", "no experiment shows it yet"),
        "not_settled": Mark("none", "Cause not settled", "the experiment's interval is too wide"),
    }
    return words.get(finding.status, Mark("none", "No cause shown"))


def _tested(finding: Finding) -> bool:
    """Whether its evidence compares throughputs; a finding of fact needs none."""
    return any(item.unit == "×" for item in finding.evidence)


def _gain_mark(report: Report) -> Mark:
    recommended = report.recommendation
    if recommended is not None and recommended.tweak is not None:
        return _tweak_mark(report, recommended)
    if recommended is None:
        return Mark("na", "No gain claimed")
    if recommended.trial == report.baseline or main_fix(report) is None:
        settled = about.no_difference(report)
        return Mark("na", "Nothing to gain", "from these settings") if settled else Mark("na", "No gain shown")
    if recommended.firmness == "verified":
        return Mark("full", "Gain verified", "by pairs that did not choose it")
    count = recommended.versus_baseline.rounds if recommended.versus_baseline else about.rounds(report)
    said = about.plural(count, "round")
    if recommended.firmness == "measured":
        return Mark("half", "Gain measured", f"in {said} that did not choose it")
    if count < ASKED_ROUNDS:
        return Mark("half", "Provisional:", f"{said}; pindiag asks for {ASKED_ROUNDS}")
    return Mark("half", "Provisional:", f"the same {said} chose it")


def _tweak_mark(report: Report, recommended: Recommendation) -> Mark:
    tried, effect = about.trial(report, recommended.tweak), recommended.fix.effect if recommended.fix else None
    if effect is not None and effect.kind == "verified":
        return Mark("full", "Gain verified", "by pairs that did not choose it")
    count = tried.versus_baseline.rounds if tried is not None and tried.versus_baseline else about.rounds(report)
    said = f"{about.plural(count, 'round')} beside the script as written"
    if effect is None or effect.kind == "provisional":
        return Mark("half", "Provisional:", f"{said}; pindiag asks for {ASKED_ROUNDS}")
    return Mark("half", f"Gain {effect.kind}", f"in {said}")


def _verification_mark(report: Report) -> Mark:
    verified = report.verification
    if verified is None:
        nothing = about.leading(report) in (None, report.baseline) or main_fix(report) is None
        return Mark("na", "Nothing to verify") if nothing else Mark("none", "Not verified", "in fresh pairs")
    gain = figures.ratio_with_interval(verified.ratio, verified.ci95)
    pairs = about.pairs(verified)
    if report.recommendation and report.recommendation.tweak not in (None, about.verified(report)):
        return Mark("none", "Not verified:", f"{pairs} tried the loader's settings alone, {gain}")
    if verified.ci95 is not None and verified.ci95[0] > 1:
        return Mark("full", "Verified", f"in {pairs}: {gain}")
    if verified.ci95 is None and verified.ratio > 1:
        return Mark("half", "Verified in part", f"in {pairs}, too few for an interval: {gain}")
    return Mark("none", "Not borne out", f"by {pairs}: {gain}")


def _patch_mark(report: Report) -> Mark | None:
    """What the patch itself gave, where `--verify-patch` measured it."""
    made = report.patch_verification
    if made is None:
        return None
    if made.ratio is None:
        return Mark("none", "Patch not measured:", made.reason or "")
    shown = made.ci95 is not None and made.ci95[0] > 1
    gain = figures.ratio_with_interval(made.ratio, made.ci95)
    return Mark("full" if shown else "none", "Patch measured", f"in {about.pairs(made)}: {gain}")


def _disagreement_mark(report: Report) -> Mark | None:
    verified = report.verification
    if verified is None or verified.agrees_with_live is not False:
        return None
    fresh = figures.ratio_with_interval(verified.ratio, verified.ci95)
    if verified.epochs is not None and verified.steady_ratio is not None:
        fresh = f"{figures.ratio_with_interval(verified.steady_ratio, verified.steady_ci95)} over the same steps"
    live = ""
    if verified.live_ratio is not None:
        live = f"{figures.ratio_with_interval(verified.live_ratio, verified.live_ci95)} live, "
    return Mark("half", "Live and fresh disagree:", f"{live}{fresh} fresh; fresh decides")


def _busy_mark(report: Report) -> Mark | None:
    """Whether the machine had so much else to do that it is part of all figures."""
    values = {fact.name: fact.value for fact in report.facts if fact.trial is None}
    share = values.get("disturbed_blocks_share")
    if values.get("disturbed_as_usual") is not True or not isinstance(share, float):
        return None
    return Mark("half", "Busy machine:", f"something from outside disturbed {figures.share(share)} of the blocks")


# --------------------------------------------------------------------------------------------------- the chart


def first_chart(
    report: Report, measured: Sequence[Row], steps: Sequence[Steps], spoken: str, found: Ceilings | None
) -> Chart | None:
    """Ceilings where they were measured; else what each configuration reached, or what the one step consists of."""
    if found is not None:
        return _ceilings(found, report)
    if len(measured) > 1:
        return _reached(measured)
    if steps:
        title = conclusions.stages(steps)
        return Chart(stages.breakdown(steps[0], spoken, title), title, "Main thread, mean of the counted steps, ms.")
    return None


def _ceilings(found: Ceilings, report: Report) -> Chart:
    bars = {id(row): _bar(row) for row in found.rows}
    trained = [Bar(label, one.samples_per_second, "ink", trial=one.id) for label, one in training(report)]
    few = [bars[id(row)] for row in found.few]
    rates = [bar.rate for bar in [*bars.values(), *trained] if bar.rate]
    caption = f"What the loop reaches with these stages alone. Median of the blocks{_line(rates)}."
    caption += _epochs_beside(report)
    return Chart(ceilings_chart.chart(list(bars.values()), trained, few, found.title), found.title, caption)


def _epochs_beside(report: Report) -> str:
    """Why the gain of whole epochs is another one than that of the bars."""
    made = report.verification
    if made is None or made.epochs is None:
        return ""
    return f" The bars time steps; the {figures.ratio(made.ratio)} is of whole epochs, in which workers start as well."


def _bar(row: Ceiling) -> Bar:
    role: Literal["accent", "grey"] = "accent" if row.marked else "grey"
    return Bar(row.label, row.rate, role, row.reason, row.trial.id if row.trial else "")


def training(report: Report) -> list[tuple[str, Trial]]:
    """What training itself reaches: as written, as recommended, and with the line of code that removes the cause."""
    made = report.recommendation
    ahead = about.trial(report, made.tweak) if made else None
    best = about.trial(report, made.trial) if made and made.trial != report.baseline else None
    rows = {"Training as written": about.trial(report, report.baseline)}
    rows |= {"Training, recommended": best} if ahead is None else _with_code(report, ahead, best)
    return [(label, one) for label, one in rows.items() if one and one.samples_per_second]


def _with_code(report: Report, ahead: Trial, best: Trial | None) -> dict[str, Trial | None]:
    """The loader's settings and the line of code that comes first, each alone and both together where they ran so."""
    alike = {one.configuration.id: one for one in report.trials if one.tweak == ahead.tweak}
    rows = {
        "Training, best loader settings": best,
        "Training, line of code added": alike.get(report.baseline or ""),
        "Training, both": alike.get(best.id) if best else None,
    }
    elsewhere = {} if ahead in rows.values() else {"Training, other settings and line of code": ahead}
    return rows | elsewhere


def _reached(measured: Sequence[Row]) -> Chart:
    measured = sorted(measured, key=lambda row: -median_rate(row.trial))
    shown = list(measured[:FIRST_SCREEN_ROWS])
    kept = [row for row in measured[FIRST_SCREEN_ROWS:] if row.role != "other"]
    shown = shown[: FIRST_SCREEN_ROWS - len(kept)] + kept
    left_out = len(measured) - len(shown)
    more = f" {left_out} slower ones stand in the table." if left_out else ""
    title = conclusions.reached(measured)
    rates = [row.trial.samples_per_second for row in shown if row.trial.samples_per_second]
    return Chart(reached.chart(shown, title), title, f"Training, samples/s: median of its blocks{_line(rates)}.{more}")


def _line(rates: Sequence[Estimate]) -> str:
    return "; line: 95\u00a0% interval" if any(rate.ci95 for rate in rates) else ""
