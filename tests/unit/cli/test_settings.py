"""`[tool.pindiag]`, PINDIAG_ variables, and which of them wins."""

from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pindiag.cli.run import command as run
from pindiag.cli.settings import Configurable, refuse_misspelt
from pindiag.errors import SettingsError


def settings(text: str, folder: Path = Path(".")) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text)


def taken(*words: str) -> dict[str, object]:
    with run.make_context("run", ["train.py", *words]) as context:
        return context.params


def test_the_file_sets_what_the_command_line_and_the_environment_leave(monkeypatch):
    settings('[tool.pindiag]\nbudget = "2m"\nrounds = 4\nsweep = true\nfail_on = "high"\nno-verify = true\n')
    assert {name: taken()[name] for name in ("budget", "rounds", "sweep", "fail_on", "no_verify", "fresh")} == {
        "budget": 120.0,
        "rounds": 4,
        "sweep": True,
        "fail_on": "high",
        "no_verify": True,
        "fresh": False,
    }


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(monkeypatch):
    settings('[tool.pindiag]\nbudget = "1m"\nrounds = 1\nseed = 1\nsweep = true\n')
    monkeypatch.setenv("PINDIAG_BUDGET", "2m")
    monkeypatch.setenv("PINDIAG_ROUNDS", "2")
    monkeypatch.setenv("PINDIAG_SWEEP", "0")
    got = taken("--budget", "3m")
    assert (got["budget"], got["rounds"], got["seed"], got["sweep"]) == (180.0, 2, 1, False)


def test_every_option_has_its_variable_by_its_long_name():
    variables = {option.envvar for option in run.params if isinstance(option, click.Option)}
    assert {"PINDIAG_OUTPUT", "PINDIAG_JSON", "PINDIAG_NO_VERIFY", "PINDIAG_COLOR", "PINDIAG_FAIL_ON"} <= variables
    assert len(variables) == len([one for one in run.params if isinstance(one, click.Option)])


def test_the_nearest_file_that_has_the_table_counts(nowhere, monkeypatch):
    settings("[tool.pindiag]\nrounds = 3\n")
    settings("[tool.pindiag]\nrounds = 4\n", Path("inner"))
    settings('[tool.other]\nname = "pindiag"\n', Path("inner/without"))
    monkeypatch.chdir(nowhere / "inner" / "without")
    assert taken()["rounds"] == 4


def test_options_of_the_script_are_no_reason_not_to_look(monkeypatch):
    settings("[tool.pindiag]\nrounds = 3\n")
    assert taken("--", "--help")["rounds"] == 3


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("buget = 3", "has no setting buget. Did you mean budget?"),
        ("zzz = 3", "has no setting zzz. `pindiag run --help` lists what there is."),
        ("color = 'never'", "has no setting color."),
        ("sweep = 'yes'", "sweep is on or off. Write sweep = true or sweep = false."),
        ("budget = true", "budget takes a text or a number. Write it as for --budget, in quotes."),
        ("budget = [1]", "budget takes a text or a number."),
        ("budget = 'soon'", "budget: 'soon' is not a duration such as 90s, 5m or 1h."),
        ("rounds = 0", "rounds: 0 is not in the range x>=1."),
        ("rounds = = 3", "cannot be read: "),
    ],
)
def test_what_cannot_be_set_is_refused_with_its_file_and_a_next_step(line, said, pindiag, nowhere):
    settings(f"[tool.pindiag]\n{line}\n")
    refused = pindiag("run", "train.py")
    assert (refused.code, refused.out) == (2, "")
    assert f"{nowhere / 'pyproject.toml'}" in refused.err
    assert said in refused.err


def test_a_table_that_is_none_is_refused(pindiag):
    settings("[tool]\npindiag = 3\n")
    assert "tool.pindiag is no table." in pindiag("run", "train.py").err


def test_a_misspelt_variable_is_refused_and_somebody_elses_is_not(pindiag, monkeypatch):
    monkeypatch.setenv("PINDIAG_RUOND", "3")
    refused = pindiag("run", "train.py")
    assert refused.code == 2
    assert "PINDIAG_RUOND sets nothing. Did you mean PINDIAG_ROUNDS?" in refused.err
    refuse_misspelt(["PINDIAG_EXPECT_WHEEL", "PINDIAG_DEBUG", "PINDIAG_COLOR", "OTHER"], ["PINDIAG_ROUNDS"])


def test_a_value_of_the_environment_is_checked_like_one_of_the_command_line(pindiag, monkeypatch):
    monkeypatch.setenv("PINDIAG_BUDGET", "soon")
    refused = pindiag("run", "train.py")
    assert refused.code == 2
    assert "'soon' is not a duration" in refused.err


def test_help_is_given_whatever_the_settings_say(pindiag, monkeypatch):
    settings("[tool.pindiag]\nbuget = 3\n")
    monkeypatch.setenv("PINDIAG_RUONDS", "3")
    said = pindiag("run", "--help")
    assert said.code == 0
    assert "[tool.pindiag]" in said.out
    assert pindiag("list", "--help").code == 0


@given(st.text(max_size=20))
def test_a_file_of_anything_is_read_or_refused(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("any")
    settings(f"[tool.pindiag]\n{text}\n", folder)
    from pindiag.cli.settings import from_file

    try:
        found = from_file(folder, {"rounds": next(one for one in run.params if one.name == "rounds")})
    except (SettingsError, UnicodeEncodeError):
        return
    assert set(found) <= {"rounds"}


def test_only_run_is_configured(pindiag):
    from pindiag.cli import group

    assert [name for name, each in group.commands.items() if isinstance(each, Configurable)] == ["run"]
