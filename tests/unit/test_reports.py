"""What public reports tell of is covered by a sample, a case of a rule or a test: each link leads to one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.toml import read_toml

TESTS = Path(__file__).parents[1]
REPORTS: dict[str, list[str]] = yaml.safe_load((TESTS / "data" / "reports.yaml").read_text())
ADDRESS = re.compile(r"[\w.-]+/[\w.-]+#\d+")
TRUTH = read_toml(TESTS.parent / "samples" / "truth.toml")
LINKS = [(address, link) for address, links in REPORTS.items() for link in links]


def is_there(link: str) -> bool:
    kind, _, rest = link.partition(":")
    if kind == "sample":
        return rest in TRUTH
    if kind == "case":
        code, _, name = rest.partition("/")
        return name in yaml.safe_load((TESTS / "rules" / "cases" / f"{code}.yaml").read_text())
    file, _, name = rest.partition("::")
    return kind == "test" and re.search(rf"^def {name}\(", (TESTS / file).read_text(), re.MULTILINE) is not None


@pytest.mark.parametrize("address", REPORTS)
def test_a_report_is_named_by_its_address_and_covered(address: str) -> None:
    assert ADDRESS.fullmatch(address)
    assert REPORTS[address]


@pytest.mark.parametrize(("address", "link"), LINKS, ids=[f"{address}-{link}" for address, link in LINKS])
def test_what_covers_it_is_there(address: str, link: str) -> None:
    assert is_there(link)
