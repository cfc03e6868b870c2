"""Colours, the summary of a CI step, completion, and what is loaded for `--help`."""

import subprocess
import sys

import msgspec
import pytest

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
