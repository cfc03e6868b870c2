"""A ticket of a run: its text, and the zip beside it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import msgspec
import pytest
import synthetic_run

from pindiag.api.outcome import write
from pindiag.api.ticketing import ticket
from pindiag.errors import NotARun, OutputRefused
from pindiag.model import Report
from pindiag.store import RunDirectory


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """Whose report on disk shows paths."""
    made = synthetic_run.write_live_run(tmp_path_factory.mktemp("ticket") / "run", configurations=3, rounds=2, pairs=0)
    asked = made.read_spec()
    made.write_spec(
        msgspec.structs.replace(asked, args=["--wandb-key", "abc"], home="/home/ada", user="ada", host="node17")
    )
    write(made, show_paths=True)
    return made


@pytest.fixture(scope="module")
def made(run: RunDirectory):
    return ticket(run.path)


def test_the_text_has_the_summary_a_command_versions_and_attachments(made, run):
    text = made.markdown
    headline = run.read_report().verdict.headline
    assert text.startswith(f"**{headline}**\n")
    assert "\n### To reproduce\n\n```\npindiag run " in text
    assert "-- --wandb-key '<redacted>'\n```\n" in text
    assert f"| torch | {run.read_report().environment['torch']} |" in text
    assert "`summary.md`, `environment.json`, `report.html`, `report.json`" in text
    assert "<" not in text.replace("< 0.", "").replace("'<redacted>'", "")


def test_the_zip_is_redacted_although_the_report_on_disk_is_not(made, run):
    assert run.read_report().environment["redaction"] == "off (--show-paths)"
    with zipfile.ZipFile(made.archive) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    assert sorted(files) == ["environment.json", "report.html", "report.json", "summary.md"]
    report = msgspec.json.decode(files["report.json"], type=Report)
    assert report.environment["redaction"] == "on"
    assert json.loads(files["environment.json"]) == report.environment
    assert b"Redaction: on." in files["report.html"]
    assert made.archive == run.path / "ticket.zip"


def test_two_zips_of_one_run_are_equal(made, run, tmp_path):
    again = ticket(run.path, tmp_path / "again.zip")
    assert again.archive.read_bytes() == made.archive.read_bytes()


def test_what_does_not_fit_is_left_out_and_said(made, run, tmp_path):
    most = made.archive.stat().st_size - 1
    small = ticket(run.path, tmp_path / "small.zip", limit_bytes=most)
    assert small.archive.stat().st_size <= most
    with zipfile.ZipFile(small.archive) as archive:
        assert "summary.md" in archive.namelist()
        missing = {"summary.md", "environment.json", "report.html", "report.json"} - set(archive.namelist())
    assert len(small.left_out) == len(missing) >= 1
    for name in missing:
        assert f"- Not attached: `{name}`, " in small.markdown


def test_what_is_no_run_and_what_cannot_be_written_are_errors(run, tmp_path):
    with pytest.raises(NotARun):
        ticket(tmp_path)
    with pytest.raises(OutputRefused, match="cannot be written"):
        ticket(run.path, Path(tmp_path, "no", "folder.zip"))
