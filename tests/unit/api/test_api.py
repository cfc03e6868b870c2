"""What Python users have, and that it says what it does."""

from __future__ import annotations

import inspect
import subprocess
import sys

import msgspec
import pytest
import synthetic_run

from pindiag import api
from pindiag.errors import ExitCode, NotARun
from pindiag.model import Report


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return synthetic_run.write_live_run(tmp_path_factory.mktemp("api") / "run", configurations=2, rounds=3, pairs=0)


def test_the_package_lists_itself():
    assert list(api.__all__) == sorted(api.__all__)
    assert {"run", "load", "report", "compare", "runs", "ticket", "demo"} <= set(api.__all__)


@pytest.mark.parametrize("name", api.__all__)
def test_every_name_is_documented_with_what_it_raises(name):
    made = getattr(api, name)
    assert inspect.getdoc(made)
    raises = inspect.isfunction(made) and name not in ("exit_code",)
    assert ("Raises:" in (inspect.getdoc(made) or "")) is raises


def test_a_report_made_is_the_one_that_is_loaded_and_listed(run):
    made = api.report(run.path)
    assert isinstance(made, Report)
    assert api.load(run.path) == made
    assert run.report_html.is_file()
    assert run.summary_md.is_file()
    (found,) = api.runs(run.path.parent)
    assert (found.headline, found.target) == (made.verdict.headline, "article_floats.py")
    assert api.compare(run.path, run.path).throughput[0].ratio == pytest.approx(1)
    assert api.exit_code(made) == ExitCode.OK


def test_what_is_no_run_is_one_error_with_code_cause_and_next_step(tmp_path):
    for call in (api.load, api.report, api.runs, api.ticket, lambda place: api.compare(place, place)):
        with pytest.raises(NotARun) as refused:
            call(tmp_path)
        assert refused.value.code == "PDE207"
        assert refused.value.cause
        assert refused.value.hint


def test_nothing_is_printed_and_the_report_of_a_script_may_be_shown_with_its_paths(run, capsys):
    shown = api.report(run.path, show_paths=True)
    assert shown.environment["redaction"] == "off (--show-paths)"
    assert msgspec.structs.replace(shown, environment={}) != shown
    api.report(run.path)
    assert capsys.readouterr() == ("", "")


def test_pindiag_is_a_module_that_runs():
    done = subprocess.run([sys.executable, "-m", "pindiag", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("pindiag, version ")
