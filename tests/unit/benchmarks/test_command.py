"""What the benchmarks have in common on the command line."""

from __future__ import annotations

import json

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
