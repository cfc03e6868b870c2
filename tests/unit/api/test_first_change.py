"""Sentence, patch, summary, report.json, list and terminal speak of one change first: the one that was verified."""

import html
import json

import msgspec
import pytest

from pindiag.api import applying, outcome, patching
from pindiag.api.found import runs
from pindiag.cli import console
from pindiag.journal import Journal
from pindiag.model import RunEnded
from pindiag.report.sections.verdict import main_fix
from pindiag.store import RunDirectory
from tests.unit.plan.test_leading_tweak import TWEAK, sweep

SOURCE = f"""import torch
from torch.utils.data import DataLoader


def main():
    data = make(){chr(10) * 7}
    for batch in DataLoader(data, batch_size=64, num_workers=4):
        train(batch)
"""
"""The loader is made in line 14."""


@pytest.fixture(params=[(2.0, 1.3), (1.31, 1.3)], ids=["a line of code", "arguments"])
def run(request, tmp_path, monkeypatch):
    """A run directory, and what comes first in it."""
    simulated = sweep(*request.param)
    place = tmp_path / "train.py"
    place.write_text(SOURCE)
    records = [_at(record, str(place)) for record in simulated.records]
    records.append(RunEnded(launch=0, t_ns=records[-1].t_ns, status="ok"))
    made = RunDirectory.create(tmp_path / "runs" / "one")
    made.write_spec(msgspec.structs.replace(simulated.spec, target=str(place), cwd=str(tmp_path)))
    made.write(made.sources, json.dumps({str(place): SOURCE}).encode())
    monkeypatch.setattr(RunDirectory, "records", lambda _: records)
    return made, request.param[0] == 2.0


def _at(record, place):
    key = getattr(record, "key", None)
    if key is None:
        return record
    return msgspec.structs.replace(record, key=msgspec.structs.replace(key, location=f"{place}:14"))


def test_all_say_the_same_first(run, capsys):
    directory, of_code = run
    report = outcome.write(directory, show_paths=True)
    fix = main_fix(report)
    change = "torch.set_num_threads(4)" if of_code else "num_workers=0"
    assert (report.verification.trial == TWEAK) is of_code
    assert (report.recommendation.tweak == TWEAK) is of_code
    assert fix.effect.kind == "verified"
    assert fix.effect.ratio == report.verification.ratio

    said = f"{report.verdict.headline} {report.verdict.lead}"
    assert said.index(f"`{change}`") < said.index("faster") < said.index("verified by")
    summary = directory.summary_md.read_text(encoding="utf-8")
    assert report.verdict.headline in summary
    diff = [line for line in fix.patch.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert any(change in line for line in diff)
    assert all(line in summary for line in diff)
    assert "Gain verified in" in summary
    page = html.unescape(directory.report_html.read_text(encoding="utf-8"))
    assert all(line[1:].strip() in page for line in diff)
    stored = json.loads(directory.report_json.read_bytes())
    assert stored["recommendation"]["fix"]["changes"] == fix.changes
    [listed] = runs(directory.path.parent)
    assert (listed.ratio, listed.firmness) == (fix.effect.ratio, "verified")
    console.verdict(report, directory.path, quiet=False, json_path=None)
    shown = capsys.readouterr().out
    assert fix.summary in shown
    assert all(line in shown for line in diff)


def test_apply_and_verify_patch_take_that_patch(run, tmp_path):
    directory, of_code = run
    report, _ = outcome.assemble(directory)
    assert applying.recommended(report) == (main_fix(report), main_fix(report).patch)
    [edit] = applying.propose(directory.path).edits
    added = "torch.set_num_threads(4)" if of_code else "num_workers=0"
    assert added in edit.after.decode()
    handed = patching._patch(directory, directory.read_spec())
    assert handed.after == {str(tmp_path / "train.py"): edit.after.decode()}
    assert handed.summary == main_fix(report).summary
    place, _, line = handed.loader.location.rpartition(":")
    assert "DataLoader(data" in handed.after[place].splitlines()[int(line) - 1]
    assert Journal(directory.records()).chosen.key.location == f"{place}:14"
