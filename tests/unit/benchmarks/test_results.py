"""Results that are kept can be read, say where they come from, and have the fields that README names."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path

import command
import pytest

FOLDER = Path(command.__file__).parent
README = (FOLDER / "README.md").read_text()
RESULTS = sorted((FOLDER / "results").glob("*.json"))
NAME = re.compile(r"(?P<benchmark>\w+)-(?P<machine>cpu|h200)-(?P<date>\d{4}-\d\d-\d\d)")


def fields(benchmark: str) -> set[str]:
    """What README says that a benchmark prints; its further rows have no name of their own."""
    found: set[str] = set()
    owner = None
    for line in README.splitlines():
        if not line.startswith("| "):
            continue
        name, prints, *_ = (cell.strip() for cell in line.strip("|").split("|"))
        owner = name.strip("`") or owner
        if owner == f"{benchmark}.py":
            found |= set(re.findall(r"`([a-z][a-z0-9_]*)`", prints))
    return found


@pytest.fixture(params=RESULTS, ids=lambda path: path.stem)
def result(request):
    return request.param


def test_there_are_results():
    assert RESULTS


def test_a_result_is_named_dated_and_listed(result):
    told = NAME.fullmatch(result.stem)
    assert told is not None
    kept = json.loads(result.read_text())
    assert date.fromisoformat(told["date"]) == date.fromisoformat(kept["date"])
    assert {"cpu": "CPU", "h200": "H200"}[told["machine"]] in kept["machine"]
    assert f"`results/{result.name}`" in README


def test_a_result_of_a_benchmark_has_the_fields_that_readme_names(result):
    benchmark = NAME.fullmatch(result.stem)["benchmark"]
    if not (FOLDER / f"{benchmark}.py").exists():
        return
    kept = json.loads(result.read_text())
    assert kept["command"].startswith(f"benchmarks/{benchmark}.py")
    for case in kept.get("cases", [{}]):
        assert fields(benchmark) <= {*kept, *case}


@pytest.mark.parametrize(
    ("benchmark", "named"),
    [
        ("versus_advice", {"cases", "ratio_to_best_advice", "ci95"}),
        ("overhead", {"cases", "added_us_per_step", "probed_over_plain"}),
        ("one_line", {"ratio", "ci95"}),
    ],
)
def test_readme_names_fields(benchmark, named):
    assert fields(benchmark) == named


def test_readme_has_a_row_for_each_benchmark():
    with_json = [path.stem for path in FOLDER.glob("*.py") if "command.parser(" in path.read_text()]
    assert {name for name in with_json if not fields(name)} == set()
