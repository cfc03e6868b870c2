"""Whether the gain that a report states for its patch is what the patched script gives in fresh processes.

    python benchmarks/fixes.py --quick --json -
    python benchmarks/fixes.py slow_reads tabular_rows --budget 90s --json PATH
    python benchmarks/fixes.py --merge PATH PATH ... --json PATH

Prints {"within", "total", "cases": [{"sample", "fix", "stated", "stated_ci95", "fresh", "fresh_ci95", "within",
"applies", "proposed_again", ...}]}.

Each sample is copied to a folder of its own and swept there as a user does. The fix is the one whose patch the report
shows, "stated" its gain as the report has it. Then `pindiag run --verify-patch` measures the script as it was against
the patched one in fresh processes, none of which chose or stated anything: "fresh". Last `pindiag apply` makes the
change, and the patched script is swept again for --again, in FOLDER/SAMPLE/again. What the FOLDER of --runs has of all
this is taken as it is; the copy there is what it was when this ends.

within: the two gains are estimates of one ratio, and do not differ significantly: their logarithms lie no further
apart than both intervals explain, half-widths added as independent errors are, by their squares. Thus the fresh point
lies in the stated interval once that is widened by the uncertainty of the fresh point itself.
applies: `pindiag apply` changed the script, which parses and has all comments that it had.
proposed_again: whether the second sweep proposes, in any patch, part of what the first one changed.
"stated_epochs" and "fresh_epochs" say how many whole epochs a launch covered on either side; null: steps alone. Where
the stated gain is one of steps, so is the fresh one, though its launches may have covered epochs.

"total" counts the samples whose report states a gain with its interval for a patch; "why" says what was missing of the
others, which show nothing, or were not faster at all. Without names, all samples whose truth on this kind of machine
knows a change that helps. To measure several at a time, start a process for each, and merge what they wrote.

With --quick one target with planted waits, two configurations, and short blocks.
"""

from __future__ import annotations

import argparse
import ast
import io
import math
import shutil
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import command
import msgspec
import torch
from product import NoReport, pindiag, report_of
from recordings import SAMPLES, truths, where
from sweeps import Place, add_runs, kept_in

from pindiag import race
from pindiag.journal import PATCHED_TRIAL, Journal
from pindiag.model import Effect, Fix, PatchVerification, Report
from pindiag.report.sections.verdict import main_fix
from pindiag.store import RunDirectory

Case = dict[str, object]
SLOW_STORE = Path(__file__).resolve().parent / "targets" / "slow_store.py"
EMPTY: Case = dict.fromkeys(
    (
        *("fix", "kind", "stated", "stated_ci95", "stated_epochs", "fresh", "fresh_ci95", "fresh_epochs"),
        *("within", "applies", "proposed_again", "why"),
    )
)


@dataclass(frozen=True)
class Lengths:
    """Options of the three runs."""

    sweep: Sequence[str]
    pairs: Sequence[str]
    again: Sequence[str]


def lengths(budget: str, pairs: str, again: str) -> Lengths:
    """Budgets; the second sweep is there for what it proposes, and verifies nothing."""
    return Lengths(["--budget", budget], ["--budget", pairs], ["--budget", again, "--no-verify"])


SHORT = ("--no-verify", "--grid", "num_workers=0,4", "--steps", "8")
QUICK = Lengths(
    sweep=("--budget", "8s", "--rounds", "3", *SHORT),
    pairs=("--budget", "8s"),
    again=("--budget", "2s", "--rounds", "1", *SHORT),
)
"""Waits of known length: four workers make it five times as fast."""


def is_within(stated: Effect, fresh: PatchVerification) -> bool | None:
    """Whether two gains differ by no more than their intervals explain; None where one has none."""
    if stated.ci95 is None or fresh.ci95 is None or fresh.ratio is None:
        return None
    halves = [math.log(high / low) / 2 for low, high in (stated.ci95, fresh.ci95)]
    return abs(math.log(fresh.ratio / stated.ratio)) <= math.hypot(*halves)


def comments(source: str) -> Counter[str]:
    """All comments of a script, and how often each stands there."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


def is_sound(before: str, after: str) -> bool:
    """Whether a script was changed, parses, and has kept its comments."""
    try:
        ast.parse(after)
    except SyntaxError:
        return False
    return before != after and comments(before) <= comments(after)


def proposals(report: Report) -> Iterator[Fix]:
    """Every fix of a report that has a patch."""
    own = [report.recommendation.fix] if report.recommendation and report.recommendation.fix else []
    yield from (fix for fix in [*(fix for each in report.findings for fix in each.fixes), *own] if fix.patch)


def is_proposed_again(first: Fix, report: Report) -> bool:
    """Whether some patch of a report changes what the first one has changed already."""
    made = {(name, value) for name, value in first.changes.items() if name not in first.by_hand}
    return any(made & set(fix.changes.items()) for fix in proposals(report))


# ------------------------------------------------------------------------------------------------------ measuring


def measured(script: Path, options: Lengths, runs: Path) -> Case:
    """One sample: swept, its patch verified and applied, swept again."""
    place = Place.of(script, runs)
    case = {"sample": script.stem} | EMPTY
    try:
        report = place.report(["--sweep", *options.sweep])
        fix = main_fix(report)
        case |= stated(fix, report)
        if fix is None or fix.patch is None:
            return case | {"why": why_without_patch(fix, report)}
        if report.patch_verification is None:
            report = report_of(["--verify-patch", str(place.run), "-q", *options.pairs], place.run)
        case |= compared(fix, alike(report.patch_verification, place.run, case["stated_epochs"] is not None))
        again = Place(place.folder / "again", place.name)
        case["applies"] = applied(place, again.script)
        return case | {"proposed_again": is_proposed_again(fix, again.report(["--sweep", *options.again]))}
    except NoReport as error:
        return case | {"why": str(error)}


def stated(fix: Fix | None, report: Report) -> Case:
    """What the report says of its fix."""
    if fix is None or fix.effect is None:
        return {"fix": fix and fix.summary}
    by_pairs = fix.effect.kind == "verified" and report.verification is not None
    return {
        "fix": fix.summary,
        "kind": fix.effect.kind,
        "stated": fix.effect.ratio,
        "stated_ci95": fix.effect.ci95,
        "stated_epochs": report.verification.epochs if by_pairs and report.verification else None,
    }


def why_without_patch(fix: Fix | None, report: Report) -> str:
    """Why there is nothing to measure."""
    return f"the report shows no patch: {report.verdict.headline}" if fix is None else f"no patch: {fix.snippet}"


def alike(fresh: PatchVerification | None, run: Path, whole: bool) -> PatchVerification | None:
    """The fresh gain over what the stated one covers: whole epochs, or steps alone."""
    if fresh is None or whole or fresh.epochs is None:
        return fresh
    journal = Journal(RunDirectory.open(RunDirectory.open(run).patched).records())
    steps = race.verification(journal, PATCHED_TRIAL, steady=True)
    if steps is None:
        return fresh
    return msgspec.structs.replace(fresh, ratio=steps.value, ci95=steps.ci95, pairs=steps.count, epochs=None)


def compared(fix: Fix, fresh: PatchVerification | None) -> Case:
    """The fresh gain beside the stated one."""
    if fresh is None:
        return {"why": "the patch was not measured"}
    found: Case = {"fresh": fresh.ratio, "fresh_ci95": fresh.ci95, "fresh_epochs": fresh.epochs}
    if fix.effect is None or fix.effect.ci95 is None:
        return found | {"why": "the report states no interval"}
    within = is_within(fix.effect, fresh)
    why = None if within is not None else fresh.reason or f"{fresh.pairs} fresh pairs are too few for an interval"
    return found | {"within": bool(within), "why": why}


def applied(place: Place, patched: Path) -> bool:
    """Whether `pindiag apply` makes the change, and makes it well.

    Args:
        place: of the run; its script is afterwards what it was, for whoever looks at the run next.
        patched: where the script with the change is left; one that is there is judged as it is.
    """
    before = place.script.read_text()
    if not patched.exists():
        patched.parent.mkdir(exist_ok=True)
        try:
            pindiag(["apply", str(place.run), "--yes"], place.folder)
            shutil.copy2(place.script, patched)
        finally:
            place.script.write_text(before)
    return is_sound(before, patched.read_text())


def summary(cases: Sequence[Case]) -> Case:
    """What is printed."""
    judged = [each for each in cases if each["within"] is not None]
    return {"within": sum(bool(each["within"]) for each in judged), "total": len(judged), "cases": list(cases)}


def judged(asked: argparse.Namespace) -> Iterator[Case]:
    """What is asked for, one after the other."""
    if asked.merge:
        yield from command.cases_of(asked.merge)
        return
    options = QUICK if asked.quick else lengths(asked.budget, asked.pairs, asked.again)
    scripts = [SLOW_STORE] if asked.quick else [SAMPLES / f"{name}.py" for name in asked.samples or helped()]
    for script in scripts:
        with kept_in(asked.runs) as runs:
            found = measured(script, options, runs)
        said = "{sample}: {fix} stated {stated} {stated_ci95}, fresh {fresh} {fresh_ci95}, within: {within} {why}"
        print(said.format_map(found), file=sys.stderr)
        yield found


def helped() -> list[str]:
    """Samples for which some change is known to help on this kind of machine."""
    place = where(torch.cuda.is_available())
    return [name for name, places in truths().items() if place in places and places[place].helps]


def main() -> None:
    """Measure and print; interrupted, the samples that are done."""
    parser = command.parser(__doc__, quick="one target with planted waits, two configurations and short blocks")
    parser.add_argument("samples", nargs="*", help="names of scripts in samples/")
    parser.add_argument("--budget", default="90s", help="of the sweep (default: %(default)s)")
    parser.add_argument("--pairs", default="90s", help="of the fresh pairs (default: %(default)s)")
    parser.add_argument("--again", default="30s", help="of the second sweep (default: %(default)s)")
    add_runs(parser)
    command.add_merge(parser)
    asked = parser.parse_args()
    unknown = set(asked.samples) - set(truths())
    if unknown:
        parser.error(f"samples/truth.toml knows no {' and no '.join(sorted(unknown))}")
    cases: list[Case] = []
    with command.kept(asked.json) as figures:
        figures.update(summary(cases))
        for each in judged(asked):
            cases.append(each)
            figures.update(summary(cases))


if __name__ == "__main__":
    main()
