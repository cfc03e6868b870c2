"""A run's report, assembled from its records alone."""

from __future__ import annotations

import tarfile
from pathlib import Path

import msgspec
import pytest

from pindiag import rules
from pindiag.api import outcome
from pindiag.report.sections.verdict import main_fix
from pindiag.store import RunDirectory

RECORDED = Path(__file__).parents[2] / "data" / "h200" / "live_article_floats.tar.xz"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    with tarfile.open(RECORDED) as archive:
        archive.extractall(folder)
    report, _ = outcome.assemble(RunDirectory.open(folder / "live_article_floats"))
    return report


def test_a_recommendation_has_its_change_as_a_patch(made):
    fix = made.recommendation.fix
    assert {name: fix.changes[name] for name in ("num_workers", "pin_memory")} == {"num_workers": 0, "pin_memory": True}
    assert "+        pin_memory=True,\n" in fix.patch
    assert fix.effect.kind == "verified"


def test_it_is_shown_although_no_cause_is(made):
    unsettled = msgspec.structs.replace(made, findings=[msgspec.structs.replace(f, fixes=[]) for f in made.findings])
    assert main_fix(unsettled) is made.recommendation.fix


def test_the_verdict_says_it_as_the_framework_takes_it(made):
    """The headline and the patch beside it are about one change, in the same words."""
    fix = msgspec.structs.replace(made.recommendation.fix, written="Arguments(loader_workers=0)", location="a.py:3")
    inputs = rules.Inputs(
        trials=made.trials,
        baseline=made.baseline,
        loader=made.loader,
        verification=made.verification,
        recommendation=msgspec.structs.replace(made.recommendation, fix=fix),
    )
    said = rules.verdict([finding for finding in made.findings if not finding.fixes], inputs)
    assert said.headline.startswith("Set `Arguments(loader_workers=0)` at a.py:3: ")
