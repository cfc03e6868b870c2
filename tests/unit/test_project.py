"""The project's own files agree with each other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import pindiag
from tests.toml import read_toml

ROOT = Path(__file__).resolve().parents[2]
PROJECT = read_toml(ROOT / "pyproject.toml")
CONTRACTS = PROJECT["tool"]["importlinter"]["contracts"]
MEETING_PLACES = {"pindiag.api", "pindiag.cli", "pindiag.__main__", "pindiag.__init__"}


def modules() -> set[str]:
    entries = (path for path in (ROOT / "pindiag").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())
    return {f"pindiag.{path.stem}" for path in entries}


@pytest.mark.skipif("PINDIAG_EXPECT_WHEEL" not in os.environ, reason="the checkout is under test, not the wheel")
def test_the_installed_wheel_is_under_test():
    package = Path(pindiag.__file__).parent
    assert package.parent.name == "site-packages"
    assert (package / "templates").is_dir()


def test_every_layer_has_a_contract():
    assert modules() - MEETING_PLACES == {source for contract in CONTRACTS for source in contract["source_modules"]}


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract["name"])
def test_no_layer_may_import_where_the_layers_meet(contract):
    assert {"pindiag.api", "pindiag.cli", "click", "rich"} <= set(contract["forbidden_modules"])


def test_torch_stays_out_of_the_parent_and_of_what_judges():
    allowed = {
        s for contract in CONTRACTS if "torch" not in contract["forbidden_modules"] for s in contract["source_modules"]
    }
    assert allowed == {"pindiag.probe"}


def test_the_oldest_python_is_the_one_that_lint_and_types_are_checked_for():
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    assert PROJECT["tool"]["mypy"]["python_version"] == oldest
    assert f"Python {oldest} or newer" in (ROOT / "README.md").read_text()


def test_ci_is_a_script_that_runs():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text().rstrip().endswith("exec make test")


def test_the_pin_lies_within_the_range_that_users_get():
    (pin,) = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    (wanted,) = [each for each in PROJECT["project"]["dependencies"] if each.startswith("torch")]
    name, _, version = pin.partition("==")
    assert name == "torch"
    assert wanted == "torch>=2.6"
    assert tuple(map(int, version.split("."))) >= (2, 6)


@pytest.mark.parametrize("heading", ["a rule", "a chart", "a subcommand", "a sample"])
def test_contributing_says_how_to_add(heading):
    assert f"## How to add {heading}\n" in (ROOT / "CONTRIBUTING.md").read_text()
