"""The view model: what the templates print, and nothing that they would have to decide."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Mapping, Sequence

from pindiag import figures
from pindiag.model import Drawing, Finding, Fix, Report, RunSpec, Scalar, Trial
from pindiag.report import conclusions, names, tables, text
from pindiag.report.charts import frontier, machine, reached, stages, sweep, timeline
from pindiag.report.charts._svg import ACCENT, BAR, BG, MUTED, SOFT, Chart, Row
from pindiag.report.charts.stages import Steps
from pindiag.report.redaction import REDACTION

ASKED_ROUNDS = 6
"""Rounds below which a gain is provisional."""
FIRST_SCREEN_ROWS = 12
SHORT_PATCH_LINES = 16
MOST_NAMED = 3
"""Trials that a gap names; above it their number is enough, the table shows which."""
_SWATCHES = {ACCENT: "k1", BAR: "k2", SOFT: "k3", MUTED: "k4", BG: "k5"}
_HUNK = re.compile(r"^@@ ", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Mark:
    """One of the three marks: how sure."""

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


@dataclasses.dataclass(frozen=True)
class Section:
    """A section's place in the page."""

    slug: str
    name: str
    heading: str


@dataclasses.dataclass(frozen=True)
class View:
    """Everything that the page shows."""

    report: Report
    target: str
    command: str
    links: text.Linker
    title: str
    head: list[str]
    marks: list[Mark]
    finding: Finding | None
    fix: Fix | None
    patch: Patch | None
    next_step: tuple[str, str, bool] | None
    sections: dict[str, Section]
    rows: list[Row]
    first_chart: Chart | None
    sweep_chart: Chart | None
    sweep_table: tables.Table | None
    cost_table: tables.Table | None
    beside_table: tables.Table | None
    steps: list[Steps]
    step_chart: Chart | None
    stage_faces: dict[str, str]
    machine_chart: Chart | None
    machine_holes: list[str]
    machine_reason: str
    timeline_chart: Chart | None
    timeline_reason: str
    frontier_chart: Chart | None
    records: list[tables.RecordGroup]
    environment: list[tuple[str, str | None, str]]
    labels: Mapping[str, str]
    holds: list[str]
    lacks: list[str]
    paths_shown: bool
    has_gpu: bool | None
    """None: nothing tells."""

    @property
    def chosen(self) -> Row | None:
        """The recommended configuration, where it is not the script as written."""
        return next((row for row in self.rows if row.role == "chosen"), None)

    @property
    def pairs(self) -> list[tuple[float, float]]:
        """Baseline and recommended samples/s of each fresh pair."""
        verified = self.report.verification
        if verified is None:
            return []
        return list(zip(verified.baseline_samples_per_second, verified.recommended_samples_per_second, strict=False))

    @property
    def why_nothing(self) -> str:
        """Why no change is recommended."""
        if not self.rows:
            return "nothing was measured"
        if _no_difference(self.report):
            return "the settings as written are as good as any that was tried"
        if len(self.rows) == 1:
            return "only the script as written was measured"
        return "the run was interrupted" if self.report.target.status == "interrupted" else "no gain was shown"

    @property
    def gaps(self) -> list[tuple[str, str]]:
        """Everything that was not measured: what it is, and why; gaps of one reason together."""
        by_reason: dict[str, dict[str, list[str]]] = {}
        for gap in self.report.not_measured:
            trial, what = _what_is_missing(gap.key, self.report)
            by_reason.setdefault(gap.reason, {}).setdefault(what, []).append(trial)
        return [
            ("; ".join(_missing_words(what, trials) for what, trials in found.items()), reason)
            for reason, found in by_reason.items()
        ]

    def reason(self, key: str) -> str:
        """Why a key of report.json is null."""
        return next((gap.reason for gap in self.report.not_measured if gap.key == key), "")


def view(report: Report, drawing: Drawing, spec: RunSpec) -> View:
    """The page's content, from a redacted report."""
    labels = names.labels(report.trials)
    rows = configuration_rows(report, labels)
    measured = [row for row in rows if row.trial.samples_per_second]
    steps = [one for row in measured if (one := _steps(report, row))]
    finding = names.primary_finding(report)
    fix = main_fix(report)
    spoken = names.spoken_stage(finding)
    by_trial = {one.row.trial.id: one for one in steps}
    swept = len(rows) > 1
    over_time = conclusions.machine(drawing.series, drawing.series_reason, report)
    machine_chart, holes = _machine_chart(drawing, over_time)
    return View(
        report=report,
        target=target_name(spec),
        command=command(spec),
        links=text.Linker(report),
        title=f"{target_name(spec)}: {report.verdict.headline.replace('`', '')}",
        head=_head(report, spec),
        marks=marks(report, finding),
        finding=finding,
        fix=fix,
        patch=_patch(fix),
        next_step=next_step(report, spec),
        sections=_sections(report, over_time, rows, steps, finding),
        rows=rows,
        first_chart=_first_chart(measured, steps, spoken),
        sweep_chart=_sweep_chart(rows, report) if swept else None,
        sweep_table=tables.trials(rows, by_trial, tables.SPEED),
        cost_table=tables.trials(measured, by_trial, tables.COST),
        beside_table=tables.trials(measured, by_trial, tables.BESIDE),
        steps=steps,
        step_chart=_step_chart(steps, spoken) if swept else None,
        stage_faces=_stage_faces(steps, spoken),
        machine_chart=machine_chart,
        machine_holes=holes,
        machine_reason=drawing.series_reason or "no series was recorded",
        timeline_chart=_timeline_chart(drawing, labels, spoken),
        timeline_reason=drawing.timeline_reason or "no profiler window was recorded",
        frontier_chart=_frontier_chart(measured, report),
        records=tables.records(report, drawing, labels),
        environment=text.environment({k: v for k, v in report.environment.items() if k != REDACTION}),
        labels=labels,
        holds=_holds(report, fix, drawing),
        lacks=_lacks(report),
        paths_shown=_paths_shown(report),
        has_gpu=has_gpu(report),
    )


# ------------------------------------------------------------------------------------------------- shared with summary


def target_name(spec: RunSpec) -> str:
    """The script's file name, or the module's name."""
    return spec.target if spec.module else os.path.basename(spec.target)


def command(spec: RunSpec, *options: str) -> str:
    """A command that continues this run; the script's own arguments are not repeated, they may hold secrets."""
    target = ["-m", target_name(spec)] if spec.module else [target_name(spec)]
    return " ".join(["pindiag run", *target, *options])


def main_fix(report: Report) -> Fix | None:
    """The change that the first screen shows: the primary finding's, else that of the recommendation."""
    recommended = report.recommendation
    if recommended is None or recommended.trial == report.baseline:
        return None
    finding = names.primary_finding(report)
    ordered = [one for one in report.findings if one is not finding and one.status in ("confirmed", "suspected")]
    fixes = [fix for one in ([finding] if finding else []) + ordered for fix in one.fixes]
    wanted = [fix for fix in fixes if _leads_to(fix, report)]
    return next(iter(wanted or [fix for fix in fixes if fix.effect is not None]), None)


def _leads_to(fix: Fix, report: Report) -> bool:
    """Whether the change makes the recommended configuration out of the baseline."""
    baseline = next((one for one in report.trials if one.id == report.baseline), None)
    if baseline is None or report.recommendation is None:
        return False
    wanted = report.recommendation.configuration
    changed = {
        name
        for name in ("num_workers", "pin_memory", "non_blocking", "prefetch_factor", "persistent_workers")
        if getattr(wanted, name) != getattr(baseline.configuration, name)
    }
    return all(fix.changes.get(name) == getattr(wanted, name) for name in changed if name != "prefetch_factor")


def next_step(report: Report, spec: RunSpec) -> tuple[str, str, bool] | None:
    """What to do next: words, the command or experiment, and whether it is a command."""
    if report.target.status == "failed":
        return None
    if not spec.sweep:
        return "To try other settings:", command(spec, "--sweep"), True
    if report.target.status == "interrupted":
        return "To measure it to the end:", command(spec, "--sweep"), True
    if _no_difference(report):
        return None
    if report.blocks and rounds(report) < ASKED_ROUNDS and report.verification is None:
        return "To settle it:", command(spec, "--sweep", _more(report, spec)), True
    finding = names.primary_finding(report)
    if finding is not None and finding.status == "suspected" and finding.experiment:
        return "Would settle it:", finding.experiment, finding.experiment.startswith("pindiag ")
    return None


def _no_difference(report: Report) -> bool:
    """Whether it is shown that no configuration is faster."""
    return any(one.cause == "no_difference" and one.status == "confirmed" for one in report.findings)


def _more(report: Report, spec: RunSpec) -> str:
    """The option that brings the rounds that pindiag asks for."""
    if spec.rounds < ASKED_ROUNDS:
        return f"--rounds {ASKED_ROUNDS}"
    factor = -(-ASKED_ROUNDS // max(rounds(report), 1))
    return f"--budget {math.ceil(spec.budget_s * factor / 60)}m"


def has_gpu(report: Report) -> bool | None:
    """Whether torch has an accelerator here; None where it was not seen."""
    known = next((fact.value for fact in report.facts if fact.name == "accelerator_present"), None)
    return bool(known) if known is not None else (True if gpu_name(report) else None)


def gpu_name(report: Report) -> str | None:
    """The GPU's name."""
    name = report.environment.get("gpu")
    return name if isinstance(name, str) else None


def machine_words(report: Report, spec: RunSpec) -> str:
    """GPU and CPU cores in words."""
    cores = f"{spec.usable_cpus} CPU core{'s' * (spec.usable_cpus != 1)}"
    gpu = gpu_name(report) or {True: "a GPU", False: "no GPU", None: ""}[has_gpu(report)]
    return f"{gpu}, {cores}" if gpu else cores


def rounds(report: Report) -> int:
    """How many rounds were begun."""
    return max((block.round for block in report.blocks if block.purpose != "verify"), default=0)


# ------------------------------------------------------------------------------------------------- first screen


def _head(report: Report, spec: RunSpec) -> list[str]:
    count = len({block.trial for block in report.blocks})
    amount = (
        f"{count} configuration{'s' * (count != 1)}, {len(report.blocks)} block{'s' * (len(report.blocks) != 1)}, "
        f"{rounds(report)} round{'s' * (rounds(report) != 1)}"
    )
    return [target_name(spec), machine_words(report, spec), amount]


def marks(report: Report, finding: Finding | None) -> list[Mark]:
    """How sure: the cause, the gain, its verification."""
    return [_cause_mark(finding), _gain_mark(report), _verification_mark(report)]


def _cause_mark(finding: Finding | None) -> Mark:
    if finding is None:
        return Mark("none", "No cause shown")
    if finding.cause == "script_error":
        return Mark("full", "Failure confirmed", "by the script's own exception")
    if finding.cause == "no_difference":
        return Mark("full", "No difference", "shown by the intervals of all configurations")
    words = {
        "confirmed": Mark("full", "Cause confirmed", "by an experiment" if finding.evidence else "by its fact"),
        "suspected": Mark("half", "Cause suspected:", "no experiment shows it yet"),
        "not_settled": Mark("none", "Cause not settled", "the experiment's interval is too wide"),
    }
    return words.get(finding.status, Mark("none", "No cause shown"))


def _gain_mark(report: Report) -> Mark:
    recommended = report.recommendation
    if recommended is None:
        return Mark("na", "No gain claimed")
    if recommended.trial == report.baseline:
        settled = _no_difference(report)
        return Mark("na", "Nothing to gain", "from these settings") if settled else Mark("na", "No gain shown")
    if recommended.firmness == "verified":
        return Mark("full", "Gain verified", "by pairs that did not choose it")
    count = recommended.versus_baseline.rounds if recommended.versus_baseline else rounds(report)
    said = f"{count} round{'s' * (count != 1)}"
    if recommended.firmness == "measured":
        return Mark("half", "Gain measured", f"in {said} that did not choose it")
    if count < ASKED_ROUNDS:
        return Mark("half", "Provisional:", f"{said}; pindiag asks for {ASKED_ROUNDS}")
    return Mark("half", "Provisional:", f"the same {said} chose it")


def _verification_mark(report: Report) -> Mark:
    verified = report.verification
    if verified is None:
        nothing = report.recommendation is None or report.recommendation.trial == report.baseline
        return Mark("na", "Nothing to verify") if nothing else Mark("none", "Not verified", "in fresh pairs")
    gain = figures.ratio_with_interval(verified.ratio, verified.ci95)
    pairs = f"{verified.pairs} fresh pair{'s' * (verified.pairs != 1)}"
    if verified.agrees_with_live is False:
        return Mark("half", "Live and fresh disagree:", f"{pairs} give {gain}")
    if verified.ci95 is not None and verified.ci95[0] > 1:
        return Mark("full", "Verified", f"in {pairs}: {gain}")
    return Mark("none", "Not borne out", f"by {pairs}: {gain}")


def _patch(fix: Fix | None) -> Patch | None:
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


def _patch_lines(patch: str, *, diff: bool = True) -> list[tuple[str, str]]:
    return [(_patch_class(line) if diff else "", line) for line in patch.splitlines()]


def _patch_class(line: str) -> str:
    if line.startswith(("---", "+++")):
        return ""
    return {"+": "add", "-": "del", "@": "at"}.get(line[:1], "")


# ------------------------------------------------------------------------------------------------- rows and charts


def configuration_rows(report: Report, labels: Mapping[str, str]) -> list[Row]:
    """Configurations, fastest first; those without figures last."""
    chosen = report.recommendation.trial if report.recommendation else None
    found = []
    for trial in report.trials:
        if trial.kind != "configuration":
            continue
        is_chosen = trial.id == chosen and chosen != report.baseline
        role = "chosen" if is_chosen else "baseline" if trial.id == report.baseline else "other"
        label = labels[trial.id] + (" (as written)" if role == "baseline" else "")
        found.append(Row(trial, label, role, _round_ratios(report, trial)))  # type: ignore[arg-type]
    return sorted(found, key=lambda row: -_speed(row.trial))


def _speed(trial: Trial) -> float:
    if trial.versus_baseline is not None:
        return trial.versus_baseline.ratio
    return _median(trial) * 1e-9 if trial.samples_per_second else -1.0


def _median(trial: Trial) -> float:
    return trial.samples_per_second.median if trial.samples_per_second else 0.0


def _round_ratios(report: Report, trial: Trial) -> tuple[float, ...]:
    """Throughput over the baseline's of the same round."""
    own, reference = _by_round(report, trial.id), _by_round(report, report.baseline)
    return tuple(own[number] / reference[number] for number in sorted(own) if reference.get(number))


def _by_round(report: Report, trial: str | None) -> dict[int, float]:
    logs: dict[int, list[float]] = {}
    for block in report.blocks:
        usable = block.seconds > 0 and block.samples > 0 and block.status == "counted" and block.purpose != "verify"
        if block.trial == trial and usable:
            logs.setdefault(block.round, []).append(math.log(block.samples / block.seconds))
    return {number: math.exp(sum(values) / len(values)) for number, values in logs.items()}


def _steps(report: Report, row: Row) -> Steps | None:
    """Measured stages of a mean step; what is missing of the whole is `rest`."""
    known = {name: value for name in names.STAGES if (value := getattr(row.trial.stage_ms, name)) is not None}
    blocks = [block for block in report.blocks if block.id in set(row.trial.blocks) and block.steps]
    if len(known) < len(names.STAGES) and blocks:
        whole = 1e3 * sum(block.seconds for block in blocks) / sum(block.steps for block in blocks)
        rest = whole - sum(known.values())
        if known and rest > 0.005 * whole:
            known["rest"] = rest
    shown = {name: value for name, value in known.items() if value > 0}
    return Steps(row, shown) if shown else None


def _first_chart(measured: Sequence[Row], steps: Sequence[Steps], spoken: str) -> Chart | None:
    """The first screen's chart: what each configuration reached, or what the one step consists of."""
    if len(measured) > 1:
        measured = sorted(measured, key=lambda row: -_median(row.trial))
        shown = list(measured[:FIRST_SCREEN_ROWS])
        kept = [row for row in measured[FIRST_SCREEN_ROWS:] if row.role != "other"]
        shown = shown[: FIRST_SCREEN_ROWS - len(kept)] + kept
        left_out = len(measured) - len(shown)
        more = f" {left_out} slower ones stand in the table." if left_out else ""
        title = conclusions.reached(measured)
        line = (
            "; line: 95 % interval"
            if any(row.trial.samples_per_second.ci95 for row in shown if row.trial.samples_per_second)
            else ""
        )
        caption = f"Training, samples/s: median of its blocks{line}.{more}"
        return Chart(reached.chart(shown, title), title, caption)
    if steps:
        title = conclusions.stages(steps)
        return Chart(stages.breakdown(steps[0], spoken, title), title, "Main thread, mean of the counted steps, ms.")
    return None


def _sweep_chart(rows: Sequence[Row], report: Report) -> Chart:
    title = conclusions.sweep(rows, report.noise_floor)
    floor = report.noise_floor.ratio
    band = f" Grey band: the noise floor, {figures.floor(floor)}." if floor else ""
    decided = any(
        row.trial.versus_baseline and row.trial.versus_baseline.ci95 for row in rows if row.role != "baseline"
    )
    drawn = "; line: 95 % t-interval, not corrected; ticks: the rounds" if decided else ""
    caption = (
        "Throughput relative to the script as written, paired by round. "
        f"Dot: geometric mean{drawn}. The scale is logarithmic.{band}"
    )
    return Chart(sweep.chart(rows, floor, title), title, caption)


def _step_chart(steps: Sequence[Steps], spoken: str) -> Chart | None:
    if not steps:
        return None
    title = conclusions.stages(steps)
    merged = " What was not measured apart is in the rest of the step." if any("rest" in s.parts for s in steps) else ""
    return Chart(stages.chart(steps, spoken, title), title, f"Main thread, mean of the counted steps, ms.{merged}")


def _stage_faces(steps: Sequence[Steps], spoken: str) -> dict[str, str]:
    """Words of each stage shown, and the class of its swatch."""
    present = {part for one in steps for part in one.parts}
    classes = {part: _SWATCHES[face] for part, (face, _) in stages.faces(spoken).items()}
    return {names.STAGE_WORDS[part]: classes[part] for part in (*names.STAGES, "rest") if part in present}


def _machine_chart(drawing: Drawing, title: str) -> tuple[Chart | None, list[str]]:
    if drawing.series is None or not drawing.series.t_s:
        return None, []
    shown, missing = machine.panels(drawing.series)
    if not shown:
        return None, missing
    bins = (
        " Lines are drawn from the least and the largest value of each bin." if machine.binned(drawing.series) else ""
    )
    caption = f"Seconds since the run began. Grey bands: counted blocks, whose treatment the records name.{bins}"
    return Chart(machine.chart(drawing.series, shown, title), title, caption), missing


def _timeline_chart(drawing: Drawing, labels: Mapping[str, str], spoken: str) -> Chart | None:
    if not drawing.timeline:
        return None
    trial = drawing.timeline_trial or ""
    title = f"Some steps of {labels.get(trial, trial) or 'the script'}"
    caption = "From the profiler window after the counted blocks. Hollow bars are waits."
    return Chart(timeline.chart(drawing.timeline, spoken, title), title, caption)


def _frontier_chart(measured: Sequence[Row], report: Report) -> Chart | None:
    rows = [row for row in measured if frontier.memory_bytes(row) is not None]
    if len(rows) < 2 or report.recommendation is None:
        return None
    chosen = next((row for row in rows if row.trial.id == report.recommendation.trial), None)
    if chosen is None:
        return None
    used = figures.byte_size(frontier.memory_bytes(chosen) or 0)
    title = f"The {'recommended configuration' if chosen.role == 'chosen' else 'script as written'} needs {used}"
    caption = "Proportional, pinned and shared memory. Line: configurations that no other one beats in both."
    return Chart(frontier.chart(rows, report.recommendation.frontier, title), title, caption)


# ------------------------------------------------------------------------------------------------- sections, footer


def _sections(
    report: Report,
    over_time: str,
    rows: Sequence[Row],
    steps: Sequence[Steps],
    finding: Finding | None,
) -> dict[str, Section]:
    if len(rows) > 1:
        swept = conclusions.sweep(rows, report.noise_floor)
    else:
        swept = "No other configuration was measured" if rows else "Nothing was measured"
    found = [
        Section("why", "Why", conclusions.why(report, finding)),
        Section("sweep", "The sweep", swept),
        Section("step", "Where a step goes", conclusions.stages(steps)),
        Section("time", "Over time", over_time),
        Section("factors", "Six factors", conclusions.factors(report)),
        Section("causes", "Other causes", conclusions.causes(report.findings)),
    ]
    if report.verification is not None:
        found.append(Section("verification", "Verification", conclusions.verification(report.verification)))
    found += [
        Section("method", "Method", conclusions.method(report)),
        Section("records", "Records", conclusions.records(report)),
        Section("glossary", "Glossary", "The words, plainly"),
    ]
    return {section.slug: section for section in found}


def _what_is_missing(key: str, report: Report) -> tuple[str, str]:
    """A key of report.json as the trial's id ("" where it is of the run) and words."""
    found = re.fullmatch(r"(trials|launches)\[(\d+)\]\.(.*)", key)
    if found is None:
        return "", _key_words(key)
    number = int(found[2])
    if found[1] == "launches":
        return f"launch {report.launches[number].id if number < len(report.launches) else number}", _key_words(found[3])
    return report.trials[number].id if number < len(report.trials) else key, _key_words(found[3])


def _key_words(key: str) -> str:
    words = key.replace("trials[*].", "").replace("ci95", "interval").replace("_", " ")
    return words.replace(".", ": ")


def _missing_words(what: str, trials: Sequence[str]) -> str:
    named = [trial for trial in trials if trial]
    if not named:
        return what
    return f"{what} ({', '.join(named)})" if len(named) <= MOST_NAMED else f"{what} ({len(named)} times)"


def _paths_shown(report: Report) -> bool:
    state: Scalar = report.environment.get(REDACTION)
    return isinstance(state, str) and state.startswith("off")


def _holds(report: Report, fix: Fix | None, drawing: Drawing) -> list[str]:
    """What is embedded, clause by clause."""
    held = []
    if report.blocks:
        held.append("measurements")
    if report.loader is not None or report.trials:
        held.append("the loop's settings")
    if report.environment:
        held.append("versions and hardware")
    if fix is not None and fix.patch:
        held.append("the changed lines of the script with their neighbours")
    if report.target.error:
        held.append("the script's traceback with its source lines")
    if report.target.files_changed:
        held.append("names of files that the script touched")
    if drawing.timeline:
        held.append("times of some steps from the profiler")
    return held or ["no measurement"]


def _lacks(report: Report) -> list[str]:
    private = [] if _paths_shown(report) else ["user and host names", "home paths", "addresses"]
    return [*private, "environment variables", "command-line arguments", "data or weights"]
