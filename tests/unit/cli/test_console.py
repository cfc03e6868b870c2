"""Colours, the summary of a CI step, completion, and what is loaded for `--help`."""

import os
import re
import subprocess
import sys

import msgspec
import pytest

from pindiag.api import Step
from pindiag.cli import ci, console, group

from ..report import example

BOLD = "\x1b[1m"


@pytest.mark.parametrize(
    ("words", "styled"),
    [
        (["list"], False),
        (["list", "--color", "always"], True),
        (["--color", "always", "list"], True),
        (["--color", "always", "list", "--color", "never"], False),
        (["--color", "never", "list", "--color", "auto"], False),
    ],
)
def test_color_is_chosen_before_or_after_the_command(words, styled, a_run, pindiag, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")  # an option says more than a variable
    a_run()
    assert (BOLD in pindiag(*words).out) is styled


def test_the_environment_chooses_color_where_no_option_does(a_run, pindiag, monkeypatch):
    a_run()
    monkeypatch.setenv("PINDIAG_COLOR", "always")
    assert BOLD in pindiag("list").out
    assert BOLD not in pindiag("list", "--color", "never").out
    monkeypatch.setenv("PINDIAG_COLOR", "pink")
    assert pindiag("list").code == 2


def test_no_color_is_heeded_on_a_terminal(a_run, pindiag, monkeypatch):
    a_run()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert BOLD in pindiag("list").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in pindiag("list").out  # bold is no colour


def test_a_step_summary_is_appended_to(nowhere, monkeypatch):
    ci.step_summary("nowhere to go")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    ci.step_summary("**One**\n")
    ci.step_summary("**Two**")
    assert (nowhere / "summary.md").read_text() == "**One**\n\n**Two**\n\n"


def test_a_step_summary_that_cannot_be_written_is_said_and_costs_nothing(monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "no/such/summary.md")
    ci.step_summary("text")
    assert "no/such/summary.md cannot be written: No such file" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_that_asks_pindiag(shell, pindiag):
    said = pindiag("completion", shell)
    assert said.code == 0
    assert f"_PINDIAG_COMPLETE={shell}_complete" in said.out


def test_another_shell_is_refused(pindiag):
    assert pindiag("completion", "csh").code == 2


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("pindiag ", set(group.commands)),
        ("pindiag run --no", {"--no-verify"}),
        ("pindiag completion ", {"bash", "fish"}),
    ],
)
def test_words_are_completed(words, wanted, monkeypatch, capsys):
    from click.shell_completion import get_completion_class

    before, _, unfinished = words.rpartition(" ")
    completion = get_completion_class("zsh")(group, {}, "pindiag", "_PINDIAG_COMPLETE")
    found = {item.value for item in completion.get_completions(before.split()[1:], unfinished)}
    assert wanted <= found


def test_a_target_is_completed_as_a_file():
    from click.shell_completion import get_completion_class

    completion = get_completion_class("zsh")(group, {}, "pindiag", "_PINDIAG_COMPLETE")
    assert [item.type for item in completion.get_completions(["run"], "tr")] == ["file"]


def test_help_of_all_commands_loads_nothing_heavy():
    heavy = {"torch", "msgspec", "rich", "numpy", "scipy", "pandas", "matplotlib", "jinja2", "psutil", "webbrowser"}
    code = f"import sys; from pindiag.cli import main; main(['--help']); sys.exit(str(set(sys.modules) & {heavy!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "set()\n"
    for name in group.commands:
        assert f"\n  {name} " in done.stdout


@pytest.mark.parametrize("name", sorted(group.commands))
def test_every_command_has_help_in_whole_sentences_and_takes_color(name, pindiag):
    said = pindiag(name, "--help")
    assert said.code == 0
    assert "--color [auto|always|never]" in said.out
    assert group.commands[name].get_short_help_str(limit=200).endswith(".")


def test_the_list_of_commands_is_cut_nowhere(pindiag):
    said = pindiag("--help").out
    assert "..." not in said.partition("Commands:")[2]
    assert all(len(line) <= 80 for line in said.splitlines())


def test_a_verdict_does_not_steer_the_terminal(nowhere, capsys):
    hostile = {"patch": "-\x1b[2J\n+\ttab", "snippet": "\x07"}
    fixes = [msgspec.structs.replace(fix, **hostile) for one in example.confirmed().findings for fix in one.fixes]
    findings = [msgspec.structs.replace(one, fixes=fixes, title="\x1b[2J") for one in example.confirmed().findings]
    console.verdict(
        msgspec.structs.replace(example.confirmed(), findings=findings), nowhere, quiet=False, json_path=None
    )
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "    -␛[2J\n" in said
    assert "To do by hand: ␇" in said


def step(now, done=1, best=None):
    return Step(now=now, done=done, total=9, seconds_left=65.0, best=best)


def test_a_log_gets_one_line_a_round_or_launch(capsys):
    with console.Progress(quiet=False, verbose=False) as progress:
        for now in ("the script as written", "round 1: nw0", "round 1: nw2", "round 2: nw0", "verifying nw2"):
            progress.step(step(now, best="nw2 1.22 ×" if now == "round 2: nw0" else None))
        progress.say("a failure: \x1b[2Jof others")
    assert capsys.readouterr().err.splitlines() == [
        "pindiag: [2/9] the script as written, 1 min 05 s left",
        "pindiag: [2/9] round 1: nw0, 1 min 05 s left",
        "pindiag: [2/9] round 2: nw0 · best so far nw2 1.22 ×, 1 min 05 s left",
        "pindiag: [2/9] verifying nw2, 1 min 05 s left",
        "pindiag: a failure: ␛[2Jof others",
    ]


def test_quiet_progress_says_nothing(capsys):
    with console.Progress(quiet=True, verbose=False) as progress:
        progress.step(step("round 1: nw0"))
        progress.say("something")
    assert capsys.readouterr() == ("", "")


ON_A_TERMINAL = """
from pindiag.api import Step
from pindiag.cli.console import Progress
with Progress(quiet=False, verbose=False) as progress:
    progress.step(Step(now="round 3: " + "nw16-pin1-nb1-pf4 " * 5, done=3, total=9, seconds_left=65, best="nw2 1.22 ×"))
    progress.say("a note")
print("the verdict")
"""


def on_a_terminal(**environment):
    """What a child writes on a terminal of 60 columns."""
    ours, theirs = os.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "COLUMNS": "60", "TERM": "xterm", **environment},
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        said += piece
    os.close(ours)
    assert child.wait() == 0
    return said.decode()


def test_on_a_terminal_one_line_moves_within_its_width_and_is_gone_at_the_end():
    said = on_a_terminal()
    frames = [re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", frame).rstrip() for frame in re.split(r"[\r\n]+", said)]
    moving = [frame for frame in frames if "1 min 05 s left" in frame]
    assert moving
    assert all(len(frame) <= 60 and frame.endswith("…") for frame in moving)
    assert frames.count("a note") == 1
    assert said.rindex("\x1b[2K") > said.rindex("round 3")
    assert frames[-2:] == ["the verdict", ""]


def test_a_dumb_terminal_gets_lines_without_any_control():
    said = on_a_terminal(TERM="dumb")
    assert "\x1b" not in said
    assert [line[:24] for line in said.splitlines()] == ["pindiag: [4/9] round 3: ", "pindiag: a note", "the verdict"]
