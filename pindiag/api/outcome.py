"""From a run directory to its report: analysis, findings with their fixes, verdict."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pindiag.model import (
    SCHEMA_VERSION,
    AnyRecord,
    Block,
    Drawing,
    Factor,
    Finding,
    Fix,
    LoaderChosen,
    PatchVerification,
    Report,
    RunSpec,
    Verdict,
    Window,
)
from pindiag.store import RunDirectory, TraceEvent, read_trace

if TYPE_CHECKING:
    from pindiag.fixes import Places
    from pindiag.model import Analysis
    from pindiag.rules import Inputs


def write(directory: RunDirectory, *, show_paths: bool) -> Report:
    """Write report.html, summary.md and report.json, redacted unless `show_paths`.

    Raises:
        NotARun: the folder holds no run of this schema version.
        DiskFull: there is no room for them.
    """
    with _uncollected():
        made, drawing, spec = redacted(directory, show_paths=show_paths)
        publish(directory, made, drawing, spec)
    return made


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Records and traces are many small objects and hold no cycles: looking for some takes a sixth of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def publish(directory: RunDirectory, made: Report, drawing: Drawing, spec: RunSpec) -> None:
    """Write what `redacted` gave as report.html, summary.md and report.json.

    Raises:
        DiskFull: there is no room for them.
    """
    from pindiag.report import render_html, render_markdown

    with directory.filling():
        directory.write_report(made)
        directory.write(directory.summary_md, render_markdown(made, spec).encode())
        directory.write(directory.report_html, render_html(made, drawing, spec).encode())


def redacted(directory: RunDirectory, *, show_paths: bool = False) -> tuple[Report, Drawing, RunSpec]:
    """All that a report is made of, as it may leave the machine.

    Raises:
        NotARun: the folder holds no run of this schema version.
    """
    from pindiag.report import redact, redact_report

    asked = directory.read_spec()
    made, drawing = assemble(directory)
    return (
        redact_report(made, asked, show_paths=show_paths),
        redact(drawing, [asked], show_paths=show_paths),
        redact(asked, [asked], show_paths=show_paths),
    )


def assemble(directory: RunDirectory) -> tuple[Report, Drawing]:
    """Everything a run means, before redaction: analysis, findings with their fixes, verdict.

    Raises:
        NotARun: the folder holds no run of this schema version.
    """
    from pindiag import rules
    from pindiag.analysis.pairs import between

    spec = directory.read_spec()
    records = directory.records()
    analysis = _analysed(directory, spec, records)
    inputs = rules.Inputs.of(analysis, between(analysis))
    fixes = _fixes(analysis, records, read_sources(directory), root(spec))
    findings = [fixes.complete(finding) for finding in rules.judge(inputs)]
    analysis = _with_fix(analysis, rules.recommended_fix(inputs), fixes)
    inputs = dataclasses.replace(inputs, recommendation=analysis.recommendation)
    verdict = _of_recording(rules.verdict(findings, inputs), spec)
    return _report(analysis, findings, verdict, rules.factors(inputs)), analysis.drawing


def inputs_of(directory: RunDirectory) -> Inputs:
    """All that rules are told of a run.

    Raises:
        NotARun: the folder holds no run of this schema version.
    """
    from pindiag import rules
    from pindiag.analysis.pairs import between

    analysis = _analysed(directory, directory.read_spec(), directory.records())
    return rules.Inputs.of(analysis, between(analysis))


def _analysed(directory: RunDirectory, spec: RunSpec, records: Sequence[AnyRecord]) -> Analysis:
    from pindiag.analysis import analyse

    traces, patch = _traces(directory, records), _patch(directory)
    return analyse(spec, records, directory.worker_batches(), traces, directory.places(), patch=patch)


def _of_recording(verdict: Verdict, spec: RunSpec) -> Verdict:
    """A verdict on a recording says first that it is one, whoever makes the report again."""
    return msgspec.structs.replace(verdict, lead=f"{spec.recording} {verdict.lead}") if spec.recording else verdict


def _patch(directory: RunDirectory) -> PatchVerification | None:
    """What the patch gave, where a run of its own measured it."""
    from pindiag.analysis.patched import patch_verification

    if not directory.patched.is_dir():
        return None
    inner = RunDirectory.open(directory.patched)
    patch = inner.read_spec().patch
    return None if patch is None else patch_verification(patch, inner.records())


def _traces(directory: RunDirectory, records: Sequence[AnyRecord]) -> Mapping[str, list[TraceEvent] | str]:
    traces: dict[str, list[TraceEvent] | str] = {}
    for record in records:
        if isinstance(record, Window) and record.trace is not None:
            try:
                traces[record.trial] = read_trace(directory.path / record.trace)
            except (OSError, ValueError) as error:
                traces[record.trial] = f"the trace could not be read: {error}"
    return traces


def root(spec: RunSpec) -> str:
    """The folder that places in the report are relative to: where the command ran, or else where the script lies."""
    inside = spec.module or spec.target.startswith(spec.cwd.rstrip("/") + "/")
    return spec.cwd if inside else os.path.dirname(spec.target)


def read_sources(directory: RunDirectory) -> dict[str, str]:
    """The texts that `keep_sources` kept, by absolute path; empty where it kept none."""
    try:
        loaded: dict[str, str] = json.loads(directory.sources.read_bytes())
    except (OSError, ValueError):
        return {}
    return loaded


def _fixes(analysis: Analysis, records: Sequence[AnyRecord], sources: Mapping[str, str], root: str) -> Places:
    from pindiag.fixes import Places

    loader, maker = (None, None) if analysis.loader is None else (analysis.loader.chosen, analysis.loader.maker)
    sites = [site for record in records if isinstance(record, Block) for site in record.transfers]
    transfers = sorted({site.location for site in sites if site.kind == "to"})
    return Places(loader=loader, transfers=transfers, sources=sources, root=root, maker=maker)


def _with_fix(analysis: Analysis, fix: Fix | None, fixes: Places) -> Analysis:
    """The recommendation with its change as a patch: a gain may be shown whose cause is not.

    A tweak whose gain the rules do not take as shown comes before nothing.
    """
    from pindiag.report.names import tweak_of

    recommended = analysis.recommendation
    if recommended is None:
        return analysis
    made = None if fix is None else fixes.fix_for(fix)
    tweak = recommended.tweak if made is not None and tweak_of(made) else None
    return msgspec.structs.replace(analysis, recommendation=msgspec.structs.replace(recommended, fix=made, tweak=tweak))


def _report(analysis: Analysis, findings: list[Finding], verdict: Verdict, factors: list[Factor]) -> Report:
    measured = {name: getattr(analysis, name) for name in analysis.__struct_fields__ if name != "drawing"}
    return Report(schema_version=SCHEMA_VERSION, verdict=verdict, findings=findings, factors=factors, **measured)


def keep_sources(directory: RunDirectory, spec: RunSpec, records: Sequence[AnyRecord]) -> None:
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
            # As it is, line ends included: a patch must fit the file.
            sources[place] = Path(place).read_bytes().decode()
        except (OSError, UnicodeDecodeError):
            continue
    with directory.filling():
        directory.write(directory.sources, json.dumps(sources).encode())
