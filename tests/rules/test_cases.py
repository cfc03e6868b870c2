"""Each rule against its cases: what it says about facts and trials that are spelled out."""

from pathlib import Path

import pytest
import yaml

from pindiag import rules

from .build import inputs
from .recorded import recorded

CASES = [
    pytest.param(path.stem, case, id=f"{path.stem}-{name}")
    for path in sorted((Path(__file__).parent / "cases").glob("*.yaml"))
    for name, case in yaml.safe_load(path.read_text()).items()
]


def made(case):
    given = {name: value for name, value in case.items() if name != "expect"}
    recording = given.pop("recorded", None)
    return recorded(recording, **given) if recording else inputs(**given)


@pytest.mark.parametrize(("code", "case"), CASES)
def test_case(code, case):
    finding = next(each for each in rules.judge(made(case)) if each.rule == code)
    expected = case["expect"]
    assert finding.status == expected["status"], (finding.explanation, finding.reason)
    if "primary" in expected:
        assert rules.primary(rules.judge(made(case))).rule == code
    if "severity" in expected:
        assert finding.severity == expected["severity"]
    if "fix" in expected:
        assert finding.fixes[0].changes == expected["fix"]
    if "says" in expected:
        assert expected["says"] in finding.explanation
    if "effect" in expected:
        assert (finding.fixes[0].effect.kind, round(finding.fixes[0].effect.ratio, 2)) == tuple(expected["effect"])
    if "advice" in expected:
        assert expected["advice"] in finding.fixes[0].summary
    if "evidence" in expected:
        assert set(expected["evidence"]) <= {each.name for each in finding.evidence}
    if "under" in expected:
        assert finding.consequence_of == expected["under"]
    if "reason" in expected:
        assert expected["reason"] in finding.reason
    assert (finding.experiment is not None) or finding.status not in ("suspected",)
    assert not (finding.experiment or "").endswith(",")
    assert finding.explanation or finding.reason


def test_every_rule_has_passing_and_failing_cases():
    names = {}
    for path in (Path(__file__).parent / "cases").glob("*.yaml"):
        names[path.stem] = {name.partition("_")[0] for name in yaml.safe_load(path.read_text())}
    assert names.keys() == {each.code for each in rules.catalogue()}
    for code, kinds in names.items():
        assert "pass" in kinds, code
        assert kinds & {"fail", "suspected"}, code
