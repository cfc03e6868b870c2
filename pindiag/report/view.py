"""The view model: what the templates print, and nothing that they would have to decide."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from pindiag.model import Drawing, Fact, Finding, Fix, Report, RunSpec, SlowStep
from pindiag.report import about, ceilings, conclusions, details, names, rows, tables, text
from pindiag.report.charts._svg import Chart, Row
from pindiag.report.charts.stages import Steps
from pindiag.report.redaction import REDACTION
from pindiag.report.sections import beyond, footer, method, slow, step, sweep, time, verdict, verification, why


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
    command: str
    links: text.Linker
    title: str
    head: list[str]
    marks: list[verdict.Mark]
    finding: Finding | None
    fix: Fix | None
    patch: verdict.Patch | None
    by_hand: list[tuple[str, str]]
    """What the patch does not hold: code, and why."""
    why_nothing: str
    next_step: tuple[str, str, bool] | None
    sections: dict[str, Section]
    rows: list[Row]
    first_chart: Chart | None
    experiments: list[why.Experiment]
    workers_chart: Chart | None
    sweep_chart: Chart | None
    sweep_table: tables.Table | None
    not_run: list[tables.Line]
    """Rows beside the table, where they would hide those that were measured."""
    cost_table: tables.Table | None
    beside_table: tables.Table | None
    beside_details: list[details.Shown]
    steps: list[Steps]
    step_chart: Chart | None
    stage_faces: dict[str, str]
    step_notes: list[str]
    machine_chart: Chart | None
    machine_holes: list[str]
    machine_reason: str
    machine_details: list[details.Shown]
    timeline_chart: Chart | None
    timeline_trial: str | None
    slowest_chart: Chart | None
    strip_chart: Chart | None
    slow_steps: list[tuple[SlowStep, str]]
    """With the reason of each."""
    lanes: list[tuple[str, str, float]]
    slowest_lanes: list[tuple[str, str, float]]
    script_parts: list[tuple[str, float]]
    script_reason: str
    gpu_in_steps: str | None
    timeline_reason: str
    frontier_chart: Chart | None
    frontier_table: tables.Table | None
    sizes: sweep.Sizes | None
    has_predictions: bool
    """Whether something was predicted of a configuration that was measured."""
    beyond: list[beyond.Change]
    verified: verification.Verified | None
    patched_pairs: list[tuple[float, float]]
    patched_notes: list[str]
    records: list[tables.RecordGroup]
    files: list[tables.FileRow]
    facts: dict[str | None, list[Fact]]
    """By treatment; None: of the run."""
    environment: list[tuple[str, str | None, str]]
    labels: Mapping[str, str]
    launches: str
    order: str
    limits: list[str]
    gaps: list[tuple[str, str]]
    holds: list[str]
    lacks: list[str]
    paths_shown: bool
    has_gpu: bool | None
    """None: nothing tells."""
    has_ceilings: bool

    def reason(self, key: str) -> str:
        """Why a key of report.json is null."""
        return about.reason(self.report, key)


def view(report: Report, drawing: Drawing, spec: RunSpec) -> View:
    """The page's content, from a redacted report."""
    labels = names.labels(report.trials)
    links = text.Linker(report)
    configurations = rows.configurations(report, labels)
    measured = [row for row in configurations if row.trial.samples_per_second]
    steps = rows.steps(report, measured)
    finding = names.primary_finding(report)
    fix = verdict.main_fix(report)
    found = ceilings.ceilings(report, finding)
    patched = report.patch_verification
    spoken = names.spoken_stage(finding)
    by_trial = {one.row.trial.id: one for one in steps}
    over_time = conclusions.machine(drawing.series, drawing.series_reason, report)
    table, not_run = sweep.parted(tables.trials(configurations, by_trial, tables.SPEED, with_isolation=True))
    machine_chart, holes = time.machine_chart(drawing, over_time)
    of_script = [f for f in report.facts if f.trial == report.baseline and f.name.startswith("script_")]
    return View(
        report=report,
        command=about.command(spec),
        links=links,
        title=f"{about.target_name(spec)}: {report.verdict.headline.replace('`', '')}",
        head=_head(report, spec),
        marks=verdict.marks(report, finding),
        finding=finding,
        fix=fix,
        patch=verdict.patch(fix),
        by_hand=verdict.by_hand(fix),
        why_nothing=verdict.why_nothing(report, configurations),
        next_step=verdict.next_step(report, spec),
        sections=_sections(report, over_time, configurations, steps, finding),
        rows=configurations,
        first_chart=verdict.first_chart(report, measured, steps, spoken, found),
        experiments=why.experiments(report, found, links),
        workers_chart=why.workers_chart(report, found),
        sweep_chart=sweep.chart(configurations, report),
        sweep_table=table,
        not_run=not_run,
        cost_table=tables.trials(measured, by_trial, tables.COST),
        beside_table=tables.trials(measured, by_trial, tables.beside(report)),
        beside_details=details.shown(report, measured, details.WORKERS, details.PINNING),
        steps=steps,
        step_chart=step.chart(steps, spoken),
        stage_faces=step.faces(steps, spoken),
        step_notes=step.notes(report),
        machine_chart=machine_chart,
        machine_holes=holes,
        machine_reason=drawing.series_reason or "no series was recorded",
        machine_details=details.shown(report, measured, details.MACHINE),
        timeline_chart=time.timeline_chart(drawing, labels, spoken),
        timeline_trial=drawing.timeline_trial,
        slowest_chart=time.slowest_chart(drawing, spoken),
        strip_chart=slow.strip_chart(drawing),
        slow_steps=[(one, slow.why(one, _workers(report, drawing))) for one in drawing.slow_steps],
        lanes=slow.lanes(drawing.timeline),
        slowest_lanes=slow.lanes(drawing.slowest),
        script_parts=slow.script({fact.name: fact.value for fact in of_script if isinstance(fact.value, float | int)}),
        script_reason=next((fact.reason for fact in of_script if fact.reason), None) or "no profiler window ran",
        gpu_in_steps=time.of_gpu(report, drawing),
        timeline_reason=drawing.timeline_reason or "no profiler window was recorded",
        frontier_chart=sweep.frontier_chart(measured, report),
        frontier_table=sweep.frontier_table(measured, report),
        sizes=sweep.sizes(report, spec),
        has_predictions=any(row.trial.predicted_samples_per_second is not None for row in measured),
        beyond=beyond.changes(report),
        verified=verification.verified(report),
        patched_pairs=verification.patched_pairs(patched) if patched else [],
        patched_notes=verification.of_patch(patched, fix) if patched else [],
        records=tables.records(report, drawing, labels),
        files=tables.files(report, drawing),
        facts=tables.facts(report),
        environment=text.environment({k: v for k, v in report.environment.items() if k != REDACTION}),
        labels=labels,
        launches=method.launches(report) if report.launches else "",
        order=method.order(report),
        limits=method.limits(report),
        gaps=method.gaps(report),
        holds=footer.holds(report, fix, drawing),
        lacks=footer.lacks(report),
        paths_shown=footer.paths_shown(report),
        has_gpu=about.has_gpu(report),
        has_ceilings=found is not None,
    )


def _workers(report: Report, drawing: Drawing) -> int:
    drawn = about.trial(report, drawing.timeline_trial)
    return 0 if drawn is None else drawn.configuration.num_workers


def _head(report: Report, spec: RunSpec) -> list[str]:
    count = len({block.trial for block in report.blocks})
    amount = ", ".join(
        about.plural(number, word)
        for number, word in (
            (count, "treatment"),
            (len(report.blocks), "block"),
            (about.rounds(report), "round"),
        )
    )
    return [about.target_name(spec), about.machine(report, spec), amount]


def _sections(
    report: Report,
    over_time: str,
    configurations: Sequence[Row],
    steps: Sequence[Steps],
    finding: Finding | None,
) -> dict[str, Section]:
    found = [
        Section("why", "Why", conclusions.why(report, finding)),
        Section("sweep", "The sweep", sweep.heading(configurations, report)),
        Section("step", "Where a step goes", conclusions.stages(steps)),
        Section("time", "Over time", over_time),
        Section("factors", "Six factors", conclusions.factors(report)),
        Section("causes", "Other causes", conclusions.causes(report.findings)),
    ]
    changes = beyond.changes(report)
    if changes:
        found.append(Section("beyond", "Beyond arguments", beyond.heading(changes)))
    if report.verification is not None:
        found.append(Section("verification", "Verification", conclusions.verification(report.verification)))
    if report.patch_verification is not None:
        found.append(Section("patched", "The patch", conclusions.patched(report.patch_verification)))
    found += [
        Section("method", "Method", method.heading(report)),
        Section("records", "Records", conclusions.records(report)),
        Section("glossary", "Glossary", "The words, plainly"),
    ]
    return {section.slug: section for section in found}
