"""samples/truth.toml says something about every sample, in the words of the rules and of the grid."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pindiag.model import Configuration
from pindiag.rules.catalogue import catalogue
from tests.toml import read_toml

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
SCRIPTS = sorted(path.stem for path in SAMPLES.glob("*.py"))
TRUTH = read_toml(SAMPLES / "truth.toml")
CAUSES = {rule.name for rule in catalogue()}
VERDICTS = [pytest.param(TRUTH[name][where], id=f"{name}.{where}") for name in TRUTH for where in TRUTH[name]]


def test_every_sample_has_its_truth_on_both_kinds_of_machine():
    assert {name: sorted(places) for name, places in TRUTH.items()} == {name: ["cpu", "cuda"] for name in SCRIPTS}


@pytest.mark.parametrize("truth", VERDICTS)
def test_a_truth_has_all_its_keys(truth):
    assert set(truth) - {"also"} == {"cause", "accept", "never", "helps"}


@pytest.mark.parametrize("truth", VERDICTS)
def test_causes_are_rules(truth):
    assert {truth["cause"], *truth["accept"], *truth["never"], *truth.get("also", [])} <= CAUSES


@pytest.mark.parametrize("truth", VERDICTS)
def test_the_cause_is_accepted_and_what_never_holds_is_not(truth):
    assert truth["cause"] in truth["accept"]
    assert not {*truth["accept"], *truth.get("also", [])} & set(truth["never"])


@pytest.mark.parametrize("truth", VERDICTS)
def test_what_helps_can_be_swept(truth):
    for changes in truth["helps"]:
        assert changes
        assert set(changes) <= set(Configuration.__struct_fields__)


@pytest.mark.parametrize("truth", VERDICTS)
def test_nothing_helps_where_nothing_is_wrong(truth):
    if truth["cause"] in {"compute_bound", "no_difference"}:
        assert truth["helps"] == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_sample_knows_nothing_of_pindiag(name):
    tree = ast.parse((SAMPLES / f"{name}.py").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert "pindiag" not in "".join(map(ast.unparse, imports))
    assert ast.get_docstring(tree)
