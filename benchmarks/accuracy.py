"""How often pindiag is right about scripts whose truth is known, and how often it accuses what is not to blame.

    python benchmarks/accuracy.py --quick --json -
    python benchmarks/accuracy.py slow_reads healthy_cached --budget 90s --json PATH
    python benchmarks/accuracy.py --recorded --json -
    python benchmarks/accuracy.py --merge PATH PATH ... --json PATH

Prints {"right", "total", "false_accusations", "cases": [{"sample", "where", "recording", "cause", "status", "accepted",
"never", "right", "why"}]}. samples/truth.toml says what may stand first in the report of a sample, and what must not be
confirmed; "never" lists what was confirmed all the same. A case is right where the primary cause is accepted, none is
accused falsely, and what else holds is confirmed or suspected. "why" says what is wrong.

Sweeps each sample as a user does, with its own arguments, on the machine that this runs on. With --recorded it judges
the runs of tests/data by today's rules instead, whatever machine they come from. Interrupted, it prints what it has.
To sweep several at a time, start a process for each, with CPUs of its own, and merge what they wrote. With --runs a
sweep that is there is judged, and one that is made is left for other benchmarks.

With --quick two samples are swept, a slow one and a healthy one, in short.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import command
import torch
from product import NoReport
from recordings import DATA, SAMPLES, Truth, recordings, truths, where
from sweeps import Place, add_runs, kept_in

from pindiag import api
from pindiag.model import Finding, Report

QUICK = ("healthy_cached", "slow_reads")
QUICK_BUDGET = "14s"

Case = dict[str, object]


def case(sample: str, place: str, truth: Truth, report: Report, *, recording: str | None = None) -> Case:
    """One row of what is printed."""
    first = report.verdict.primary_cause
    accepted, accused = first in truth.accept, truth.accused(report.findings)
    wrong = [] if accepted else [f"{first or 'nothing'} stands first instead of {' or '.join(truth.accept)}"]
    wrong += [f"{cause} is confirmed, which does not hold" for cause in accused]
    wrong += [f"{_told(report.findings, cause)}, but holds too" for cause in truth.overlooked(report.findings)]
    return {
        "sample": sample,
        "where": place,
        "recording": recording,
        "cause": first,
        "status": _status(report.findings, first),
        "accepted": accepted,
        "never": accused,
        "right": not wrong,
        "why": "; ".join(wrong) or None,
    }


def _status(findings: Sequence[Finding], cause: str | None) -> str | None:
    return next((each.status for each in findings if each.cause == cause), None)


def _told(findings: Sequence[Finding], cause: str) -> str:
    found = next((each for each in findings if each.cause == cause), None)
    if found is None:
        return f"{cause} was not looked for"
    return f"{cause} is {found.status.replace('_', ' ')}{f' ({found.reason})' if found.reason else ''}"


def unmade(sample: str, place: str, why: str) -> Case:
    """The row of a sample whose run left no report."""
    nothing = dict.fromkeys(("recording", "cause", "status"))
    return {"sample": sample, "where": place, **nothing, "accepted": False, "never": [], "right": False, "why": why}


def recorded(only: Sequence[str], data: Path = DATA) -> Iterator[Case]:
    """Recordings of samples, judged by the rules of today."""
    known = truths()
    for each in recordings(data):
        with tempfile.TemporaryDirectory(prefix="pindiag-") as folder:
            run = each.unpack(Path(folder))
            sample = Path(run.read_spec().target).stem
            if only and sample not in only:
                continue
            report, _ = api.assemble(run)
        place = where(accelerator_of(report))
        truth = known.get(sample, {}).get(place)
        if truth is not None:
            yield case(sample, place, truth, report, recording=each.name)


def accelerator_of(report: Report) -> bool:
    """Whether the machine of a run had one."""
    return any(fact.name == "accelerator_present" and bool(fact.value) for fact in report.facts)


def live(only: Sequence[str], options: Sequence[str], runs: Path | None) -> Iterator[Case]:
    """Samples whose truth is known on this machine, swept one after the other."""
    place = where(torch.cuda.is_available())
    for sample, places in truths().items():
        if place in places and (not only or sample in only):
            yield swept(sample, place, places[place], options, runs)


def swept(sample: str, place: str, truth: Truth, options: Sequence[str], runs: Path | None) -> Case:
    """One sample, run as a user does. A script that fails by itself leaves a report too."""
    with kept_in(runs) as folder:
        try:
            report = Place.of(SAMPLES / f"{sample}.py", folder).report(["--sweep", *options])
        except NoReport as error:
            return unmade(sample, place, str(error))
    return case(sample, place, truth, report)


def summary(cases: Sequence[Case]) -> dict[str, object]:
    """What is printed."""
    return {
        "right": sum(bool(each["right"]) for each in cases),
        "total": len(cases),
        "false_accusations": sum(bool(each["never"]) for each in cases),
        "cases": list(cases),
    }


def line(judged: Case) -> str:
    """What was seen of one sample, in words."""
    said = "right" if judged["right"] else f"wrong: {judged['why']}"
    return f"{judged['sample']} ({judged['where']}): {judged['cause']} {judged['status']}; {said}"


def main() -> None:
    """Judge and print."""
    parser = command.parser(__doc__, quick=f"two samples, {QUICK_BUDGET} each, without verification")
    parser.add_argument("samples", nargs="*", help="names of scripts in samples/ (default: all)")
    parser.add_argument("--budget", default="60s", help="of each sweep (default: %(default)s)")
    words = "judge the recordings in the folders of FOLDER (default: %(const)s)"
    parser.add_argument("--recorded", nargs="?", type=Path, const=DATA, metavar="FOLDER", help=words)
    add_runs(parser)
    command.add_merge(parser)
    asked = parser.parse_args()
    unknown = set(asked.samples) - set(truths())
    if unknown:
        parser.error(f"samples/truth.toml knows no {' and no '.join(sorted(unknown))}")
    judged: Iterable[Case]
    if asked.merge:
        judged = command.cases_of(asked.merge)
    elif asked.recorded:
        judged = recorded(asked.samples, asked.recorded)
    elif asked.quick:
        judged = live(asked.samples or QUICK, ["--budget", QUICK_BUDGET, "--no-verify"], asked.runs)
    else:
        judged = live(asked.samples, ["--budget", asked.budget], asked.runs)
    cases: list[Case] = []
    with command.kept(asked.json) as figures:
        figures.update(summary(cases))
        for each in judged:
            cases.append(each)
            figures.update(summary(cases))
            print(line(each), file=sys.stderr)


if __name__ == "__main__":
    main()
