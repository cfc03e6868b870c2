"""What two runs beside each other say, reckoned from reports with planted rates."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest

from pindiag.api.comparison import compare, exceeded, parse_limit
from pindiag.errors import NotARun, NotComparable, UsageError
from pindiag.model import Report
from pindiag.store import RunDirectory

from ..report import example, live


def faster(report: Report, factor: float) -> Report:
    """The same run with all its blocks, and fresh launches, so many times as fast."""
    replace = msgspec.structs.replace
    blocks = [replace(block, seconds=block.seconds / factor) for block in report.blocks]
    verified = report.verification and replace(
        report.verification,
        baseline_samples_per_second=[rate * factor for rate in report.verification.baseline_samples_per_second],
        recommended_samples_per_second=[rate * factor for rate in report.verification.recommended_samples_per_second],
    )
    return replace(report, blocks=blocks, verification=verified)


@pytest.fixture
def run(tmp_path: Path):
    def make(name: str, report: Report | None = None, **asked: object) -> Path:
        report = report or example.confirmed()
        told = {"machine": "abc", "torch": "2.11.0", **report.environment}
        directory = RunDirectory.create(tmp_path / name)
        directory.write_spec(msgspec.structs.replace(example.SPEC, **asked))
        directory.write_report(msgspec.structs.replace(report, environment=told))
        return directory.path

    return make


def test_the_ratio_is_new_over_base_and_its_interval_holds_it(run):
    compared = compare(run("base"), run("new", faster(example.confirmed(), 0.8)))
    written, recommended = compared.throughput
    assert (written.name, recommended.name) == ("as written", "recommended")
    for rate in (written, recommended):
        assert rate.ratio == pytest.approx(0.8)
        assert rate.ci95[0] < 0.8 < rate.ci95[1]
        assert math.sqrt(rate.ci95[0] * rate.ci95[1]) == pytest.approx(0.8)
        assert rate.new_samples_per_second == pytest.approx(0.8 * rate.base_samples_per_second)


def test_a_round_counts_once_however_many_blocks_of_the_baseline_it_has(run):
    rounds = {block.round for block in example.confirmed().blocks if block.trial == example.BASELINE}
    compared = compare(run("base"), run("new"))
    assert compared.throughput[0].source == f"{len(rounds)} against {len(rounds)} rounds"


def test_launches_of_their_own_are_taken_where_both_have_enough(run):
    verified = live.agrees()
    pairs = len(verified.verification.baseline_samples_per_second)
    both = compare(run("base", verified), run("new", faster(verified, 1.1)))
    assert both.throughput[0].source == f"{pairs} against {pairs} fresh launches"
    assert both.throughput[0].ratio == pytest.approx(1.1)
    one = compare(run("verified", verified), run("unverified", msgspec.structs.replace(verified, verification=None)))
    assert one.throughput[0].source.endswith("rounds")


@pytest.mark.parametrize(
    ("limit", "factor", "hit"),
    [
        ("throughput:-5%", 1.0, False),
        ("throughput:-5%", 0.5, True),
        ("recommended: -5 %", 0.2, True),
        ("throughput:+400%", 2.0, True),
        ("throughput:-5%", 0.93, False),  # slower, and the noise allows that it is not
    ],
)
def test_a_gate_fails_for_what_is_shown_only(run, limit, factor, hit):
    compared = compare(run("base"), run("new", faster(example.confirmed(), factor)))
    assert exceeded(compared, parse_limit(limit)) is hit


def test_a_gate_that_cannot_tell_does_not_pass(run):
    few = msgspec.structs.replace(
        example.confirmed(), blocks=[one for one in example.confirmed().blocks if one.round < 3]
    )
    compared = compare(run("base"), run("new", few))
    assert compared.throughput[0].ci95 is None
    assert "an interval needs 3 on each side" in " ".join(compared.notes)
    with pytest.raises(NotComparable, match="--fail-on cannot be decided: 4 against 2 rounds") as refused:
        exceeded(compared, parse_limit("throughput:-5%"))
    assert refused.value.code == "PDE210"


@pytest.mark.parametrize(
    "text", ["", "throughput", "throughput:5", "memory:-5%", "throughput:-100%", "throughput:--5%"]
)
def test_what_is_no_limit_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match='Write "throughput:-5%"'):
        parse_limit(text)


def test_unlike_machines_and_targets_are_refused_unless_forced(run):
    other = msgspec.structs.replace(example.confirmed(), environment={"machine": "def"})
    base, new = run("base"), run("new", other, target="/home/ada/work/eval.py")
    with pytest.raises(NotComparable, match="unlike machines.*unlike targets: train.py and eval.py.*--force"):
        compare(base, new)
    assert compare(base, new, force=True).notes[:2] == [
        "The runs are of unlike machines.",
        "The runs are of unlike targets: train.py and eval.py.",
    ]


def test_a_report_alone_may_be_compared_and_one_that_does_not_tell_its_target_is_refused(run, tmp_path):
    base = run("base")
    told = msgspec.json.decode((base / "report.json").read_bytes())
    alone = tmp_path / "alone.json"
    alone.write_bytes(msgspec.json.encode(told))
    with pytest.raises(NotComparable, match="Not both reports tell their target"):
        compare(base, alone)
    told["environment"]["target"] = "train.py"
    alone.write_bytes(msgspec.json.encode(told))
    assert compare(base, alone).new.started_utc is None
    assert compare(base / "report.json", alone).base.started_utc == example.SPEC.started_utc


def test_what_is_no_run_is_an_error(tmp_path, run):
    (tmp_path / "broken.json").write_text("{")
    for wrong in ("nowhere", "broken.json", "."):
        with pytest.raises(NotARun):
            compare(run("base" + wrong[:1]), tmp_path / wrong)


def test_what_else_differs_is_said(run):
    before, after = {"machine": "abc", "torch": "2.11.0"}, {"machine": "abc", "torch": "2.12.0", "new": 1}
    base = run("base", msgspec.structs.replace(example.confirmed(), environment=before))
    report = msgspec.structs.replace(example.confirmed(), environment=after)
    compared = compare(base, run("new", report, args=["--epochs", "9"]))
    assert [(one.name, one.base, one.new) for one in compared.differences if one.name == "torch"] == [
        ("torch", "2.11.0", "2.12.0")
    ]
    assert "new" not in {one.name for one in compared.differences}
    assert "The script was given other arguments." in compared.notes


def test_names_and_places_are_redacted(run, tmp_path):
    verdict = msgspec.structs.replace(example.confirmed().verdict, headline="See /home/ada/work/train.py of 10.1.2.3.")
    report = msgspec.structs.replace(example.confirmed(), verdict=verdict)
    base, new = run("base", report), run("new", report)
    assert compare(base, new).base.headline == "See train.py of <address>."
    assert compare(base, new, show_paths=True).base.headline == verdict.headline
