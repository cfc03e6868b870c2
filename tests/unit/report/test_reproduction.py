"""The command that asks a run again."""

import shlex

import msgspec
import pytest

from pindiag.cli.run import command as run_command
from pindiag.report.reproduction import command

from . import example

ASKED = msgspec.structs.replace(example.SPEC, args=[])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "pindiag run train.py --sweep"),
        ({"module": True, "target": "package.train", "sweep": False}, "pindiag run -m package.train"),
        ({"budget_s": 90.0, "rounds": 3, "seed": 7}, "pindiag run train.py --sweep --budget 90s --rounds 3 --seed 7"),
        ({"batch_sizes": []}, "pindiag run train.py --sweep-batch-size"),
        ({"batch_sizes": [8, 16], "verify": False}, "pindiag run train.py --no-verify --sweep-batch-size=8,16"),
        (
            {"grid": "num_workers=0,2 pin_memory=on"},
            "pindiag run train.py --sweep --grid 'num_workers=0,2 pin_memory=on'",
        ),
        ({"args": ["--lr", "0.1", "a b"]}, "pindiag run train.py --sweep -- --lr 0.1 'a b'"),
        ({"args": ["x\ny"]}, "pindiag run train.py --sweep -- 'x y'"),
    ],
)
def test_what_was_asked_stands_in_it(asked, words):
    assert command(msgspec.structs.replace(ASKED, **asked)) == words


def test_the_command_line_takes_it():
    """And gives what was asked."""
    asked = {
        "grid": "num_workers=0,2",
        "budget_s": 90.0,
        "wait_s": 30.0,
        "keep_cap_bytes": 1 << 31,
        "loader": "train.py:3",
    }
    spec = msgspec.structs.replace(ASKED, args=["--lr", "0.1"], exhaustive=True, fresh=True, **asked)
    with run_command.make_context("run", shlex.split(command(spec))[2:]) as context:
        taken = context.params
    assert taken["words"] == ("train.py", "--lr", "0.1")
    assert taken["sweep"] and taken["exhaustive"] and taken["fresh"]
    assert {"grid": taken["grid"], "budget_s": taken["budget"], "wait_s": taken["wait"], "loader": taken["loader"]} == {
        name: asked[name] for name in ("grid", "budget_s", "wait_s", "loader")
    }
    assert taken["keep_cap"] == 1 << 31


def test_secrets_and_places_are_not_repeated_however_short():
    args = ["--key", "abc", "hf.token=xy", "--data", "/home/ada/private/set", "--out=/srv/secret-project/x"]
    said = command(msgspec.structs.replace(ASKED, args=args))
    assert said.endswith("-- --key '<redacted>' 'hf.token=<redacted>' --data '~/private/set' '--out=…/x'")
    shown = command(msgspec.structs.replace(ASKED, args=args), show_paths=True)
    assert shown.endswith("--data /home/ada/private/set --out=/srv/secret-project/x")
    assert "abc" not in shown
