"""Two runs beside each other: throughput with an honest interval, stages, memory, verdicts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pindiag import stats
from pindiag.api.found import target_name
from pindiag.comparison_model import ComparedFigure, ComparedRate, Comparison, Difference, Role, Side
from pindiag.errors import NotARun, NotComparable, UsageError
from pindiag.model import Report, RunSpec, Trial
from pindiag.report.redaction import redact
from pindiag.store import RunDirectory, read_report

_ROLES: dict[str, Role] = {"throughput": "as written", "recommended": "recommended"}
"""What `--fail-on` may name."""
_STAGES = ("wait", "transfer", "pin", "synchronise", "optimizer", "script")
_MEMORY = ("pss", "pinned", "shm")
_SAID_OTHERWISE = frozenset(("machine", "target", "redaction"))


class Limit(NamedTuple):
    """`--fail-on "throughput:-5%"`: what may change, and by how much."""

    name: Role
    ratio: float
    """New over base, at least."""


class _Run(NamedTuple):
    source: str
    report: Report
    spec: RunSpec | None

    @property
    def target(self) -> str | None:
        if self.spec is not None:
            return target_name(self.spec)
        told = self.report.environment.get("target")
        return told if isinstance(told, str) else None

    def trial(self, name: Role) -> Trial | None:
        from pindiag.report import about

        wanted = self.report.baseline if name == "as written" else about.leading(self.report)
        return about.trial(self.report, wanted)


def compare(base: Path, new: Path, *, force: bool = False, show_paths: bool = False) -> Comparison:
    """Compare two runs of one target on one machine.

    Args:
        base: run directory or report.json of what is compared against.
        new: run directory or report.json of what is compared.
        force: compare although machines or targets differ, or are not known; the notes say so.
        show_paths: leave names, addresses and paths; secrets go in any case.

    Raises:
        NotARun: one of them is neither a run directory nor a report.json of this schema version.
        NotComparable: they are of unlike machines or targets, and `force` is false.
    """
    before, after = _read(base), _read(new)
    unlike = list(_unlike(before, after))
    if unlike and not force:
        raise NotComparable(" ".join(unlike), "Compare them all the same with --force.")
    rates = [_rate(before, after, name) for name in _ROLES.values()]
    compared = Comparison(
        base=_side(before),
        new=_side(after),
        throughput=rates,
        stages=list(_stages(before, after)),
        memory=list(_memory(before, after)),
        differences=list(_differences(before, after)),
        notes=[*unlike, *_notes(before, after), *_missing(rates)],
    )
    return redact(compared, [run.spec for run in (before, after)], show_paths=show_paths)


def parse_limit(text: str) -> Limit:
    """A limit such as "throughput:-5%".

    Raises:
        UsageError: it is none.
    """
    match = re.fullmatch(r"(\w+)\s*:\s*([+-]?\d+(?:\.\d+)?)\s*%", text.strip())
    if match is None or match[1] not in _ROLES or float(match[2]) <= -100:
        raise UsageError(
            f'"{text}" is no limit.', 'Write "throughput:-5%" (the script as written) or "recommended:-5%".'
        )
    return Limit(_ROLES[match[1]], 1 + float(match[2]) / 100)


def exceeded(comparison: Comparison, limit: Limit) -> bool:
    """Whether the interval excludes that the new run keeps to the limit.

    Raises:
        NotComparable: there is no interval; a gate that cannot tell must not pass unseen.
    """
    rate = next(one for one in comparison.throughput if one.name == limit.name)
    if rate.ci95 is None:
        raise NotComparable(
            f"--fail-on cannot be decided: {rate.reason}.", "Measure both with more rounds or a larger --budget."
        )
    return rate.ci95[1] < limit.ratio


def _read(place: Path) -> _Run:
    if place.is_dir():
        directory = RunDirectory.open(place)
        return _Run(str(place), directory.read_report(), directory.read_spec())
    if not place.exists():
        raise NotARun(f"{place} does not exist.", "Name a run directory or its report.json.")
    beside = RunDirectory(place.parent)
    own = place.name == beside.report_json.name and beside.spec_path.is_file()
    return _Run(str(place), read_report(place), beside.read_spec() if own else None)


def _unlike(base: _Run, new: _Run) -> Iterator[str]:
    machines = [run.report.environment.get("machine") for run in (base, new)]
    if None in machines:
        yield "Not both reports tell their machine."
    elif machines[0] != machines[1]:
        yield "The runs are of unlike machines."
    if base.target is None or new.target is None:
        yield "Not both reports tell their target."
    elif base.target != new.target:
        yield f"The runs are of unlike targets: {base.target} and {new.target}."


def _side(run: _Run) -> Side:
    from pindiag.report import names

    recommended = run.trial("recommended")
    changed = recommended is not None and recommended.id != run.report.baseline
    verdict = run.report.verdict
    return Side(
        source=run.source,
        target=run.target,
        started_utc=run.spec.started_utc if run.spec else None,
        status=run.report.target.status,
        headline=verdict.headline,
        primary_cause=verdict.primary_cause,
        confidence=verdict.confidence,
        recommended=names.trial(recommended) if recommended and changed else None,
    )


# --------------------------------------------------------------------------------------------------- throughput


def _rate(base: _Run, new: _Run, name: Role) -> ComparedRate:
    """From launches of their own where both have enough of these, else from the rounds of the race."""
    fresh = [_fresh_launches(run, name) for run in (base, new)]
    enough = min(map(len, fresh)) >= stats.FEWEST_FOR_INTERVAL
    values = fresh if enough else [_rounds(run, name) for run in (base, new)]
    counts = f"{len(values[0])} against {len(values[1])} {'fresh launches' if enough else 'rounds'}"
    means = [stats.geometric_mean(side).value if side else None for side in values]
    ratio = stats.unpaired(*values) if all(values) else None
    return ComparedRate(
        name=name,
        base_samples_per_second=means[0],
        new_samples_per_second=means[1],
        ratio=ratio.value if ratio else None,
        ci95=ratio.ci95 if ratio else None,
        source=counts,
        reason=None if ratio and ratio.ci95 else _why_none(name, values, counts),
    )


def _why_none(name: Role, values: Sequence[Sequence[float]], counts: str) -> str:
    empty = [word for word, side in zip(("base", "new"), values, strict=True) if not side]
    if empty:
        return f"the script {name} has no counted block in {' and '.join(empty)}"
    return f"{counts}; an interval needs {stats.FEWEST_FOR_INTERVAL} on each side"


def _fresh_launches(run: _Run, name: Role) -> Sequence[float]:
    from pindiag.report import about

    verified = run.report.verification
    if verified is None:
        return []
    if name == "as written":
        return verified.baseline_samples_per_second
    return verified.recommended_samples_per_second if about.verified(run.report) == about.leading(run.report) else []


def _rounds(run: _Run, name: Role) -> list[float]:
    """One value a round: blocks of a round share its conditions, and are no two looks at the run."""
    trial = run.trial(name)
    rounds: dict[int, list[float]] = {}
    for block in run.report.blocks:
        if trial is not None and block.id in trial.blocks and block.seconds > 0 and block.samples > 0:
            rounds.setdefault(block.round, []).append(block.samples / block.seconds)
    return [stats.geometric_mean(values).value for _, values in sorted(rounds.items())]


# --------------------------------------------------------------------------------------------------- the rest


def _stages(base: _Run, new: _Run) -> Iterator[ComparedFigure]:
    sides = [run.trial("as written") for run in (base, new)]
    for name in _STAGES:
        values = [getattr(trial.stage_ms, name) if trial else None for trial in sides]
        if any(value is not None for value in values):
            yield ComparedFigure(name=name, unit="ms", base=values[0], new=values[1])


def _memory(base: _Run, new: _Run) -> Iterator[ComparedFigure]:
    sides = [run.trial("as written") for run in (base, new)]
    for name in _MEMORY:
        values = [getattr(trial.memory_bytes, name) if trial else None for trial in sides]
        if any(value is not None for value in values):
            yield ComparedFigure(name=name, unit="bytes", base=values[0], new=values[1])


def _differences(base: _Run, new: _Run) -> Iterator[Difference]:
    """What only one of them tells says more of pindiag's version than of the machine."""
    before, after = base.report.environment, new.report.environment
    for name in before:
        pair = before[name], after.get(name)
        if name not in _SAID_OTHERWISE and None not in pair and pair[0] != pair[1]:
            yield Difference(name=name, base=pair[0], new=pair[1])


def _notes(base: _Run, new: _Run) -> Iterator[str]:
    if base.spec is not None and new.spec is not None and base.spec.args != new.spec.args:
        yield "The script was given other arguments."
    batches = [trial.configuration.batch_size if (trial := run.trial("as written")) else None for run in (base, new)]
    if batches[0] != batches[1]:
        yield f"The batch size differs: {batches[0]} and {batches[1]}; stages are of a step, throughput is of samples."
    for word, run in (("base", base), ("new", new)):
        if run.report.target.status != "ok":
            yield f"The {word} run was {run.report.target.status}."
    yield (
        "The interval holds what varied within the runs. What changed between them beside the script (a warm cache, "
        "other load) is in the ratio and not in the interval."
    )


def _missing(rates: Sequence[ComparedRate]) -> Iterator[str]:
    for rate in rates:
        if rate.reason is not None:
            yield f"No {'ratio' if rate.ratio is None else 'interval'} {rate.name}: {rate.reason}."
