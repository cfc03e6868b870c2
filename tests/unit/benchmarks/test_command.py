"""What the benchmarks have in common on the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import command
import pytest


@pytest.mark.parametrize(
    ("words", "split"),
    [
        ([], ([], [])),
        (["--quick"], (["--quick"], [])),
        (["a", "--", "--rows", "3"], (["a"], ["--rows", "3"])),
        (["--", "--", "b"], ([], ["--", "b"])),
    ],
)
def test_a_samples_arguments_stand_after_two_dashes(words, split):
    assert command.at_dashes(words) == split


def test_figures_are_one_line_of_json_anywhere(tmp_path, capsys):
    command.write({"cases": [1]}, "-")
    command.write({"cases": [1]}, str(tmp_path / "figures.json"))
    printed, written = capsys.readouterr().out, (tmp_path / "figures.json").read_text()
    assert printed == written
    assert json.loads(written) == {"cases": [1]}


def test_figures_go_to_standard_output_unless_told_otherwise():
    made = command.parser("What it measures.", quick="less")
    assert made.parse_args([]).json == "-"
    assert made.parse_args(["--quick", "--json", "x"]).quick


@pytest.fixture
def termination():
    """Puts this process's own way to end back."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_figures_of_a_benchmark_that_fails_are_kept(tmp_path, termination):
    where = tmp_path / "figures.json"
    with pytest.raises(SystemExit, match="the sweep failed"), command.kept(str(where)) as figures:
        figures["cases"] = [1]
        raise SystemExit("the sweep failed")
    assert json.loads(where.read_text()) == {"cases": [1], "cut_short": "SystemExit"}


def test_a_benchmark_that_ends_in_order_is_not_cut_short(capsys, termination):
    with command.kept("-") as figures:
        figures["cases"] = [1]
    assert json.loads(capsys.readouterr().out) == {"cases": [1]}


TERMINATED = """
import os, signal, command
with command.kept("-") as figures:
    figures["sweeps"] = 3
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()
"""


@pytest.mark.skipif(not hasattr(signal, "pause"), reason="Windows ends processes without telling them")
def test_figures_of_a_benchmark_that_is_terminated_are_kept():
    environment = {**os.environ, "PYTHONPATH": str(Path(command.__file__).parent)}
    words = [sys.executable, "-c", TERMINATED]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 128 + signal.SIGTERM
    assert json.loads(done.stdout) == {"sweeps": 3, "cut_short": "SystemExit"}
