"""Texts that stand in for files: what runs, what is shown, and that the files and their caches stay as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3]
RUN = """
import inspect, json, sys
sys.path.insert(0, {folder!r})
from pindiag.probe import overlay, target
overlay.install(json.loads(sys.argv[1]))
try:
    target.run(sys.argv[2], sys.argv[3] == "-m", [])
except ValueError as error:
    print(target.text_of(error))
"""
SCRIPT = "import inspect, helper\nprint(helper.VALUE, __file__, inspect.getsource(helper.f).strip())\n"
HELPER = "VALUE = 1\ndef f(): pass\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text(HELPER)
    return tmp_path


def run(files, sources, *words):
    return subprocess.run(
        [sys.executable, "-c", RUN.format(folder=str(FOLDER)), json.dumps(sources), *words],
        capture_output=True,
        text=True,
        cwd=files,
        env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        check=False,
    )


@pytest.mark.parametrize("words", [("train.py", ""), ("train", "-m")])
def test_the_script_and_what_it_imports_are_replaced_at_their_places(words, files):
    helper = str(files / "helper.py")
    first = run(files, {}, *words)
    assert first.stdout.split(" ", 1)[0] == "1", first.stderr
    compiled = {path: path.read_bytes() for path in files.glob("__pycache__/*")}
    assert compiled, "the imported file has a cache, which must neither be read nor written now"
    script = str(files / "train.py")
    sources = {helper: "VALUE = 2\ndef f(): return 'ä'\n", script: SCRIPT.replace("print(", "print('new', ")}
    said = run(files, sources, *words)
    assert said.stdout.strip() == f"new 2 {script} def f(): return 'ä'", said.stderr
    assert {path: path.read_bytes() for path in files.glob("__pycache__/*")} == compiled
    assert ((files / "train.py").read_text(), (files / "helper.py").read_text()) == (SCRIPT, HELPER)


def test_a_traceback_shows_the_lines_that_ran(files):
    said = run(files, {str(files / "train.py"): "x = 1\nraise ValueError(x)  # new\n"}, "train.py", "")
    assert f'File "{files / "train.py"}", line 2' in said.stdout
    assert "raise ValueError(x)  # new" in said.stdout
