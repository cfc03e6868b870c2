import subprocess

import pytest

from pindiag.fixes import Places
from pindiag.fixes.inserted import KEEP_THREADS
from pindiag.fixes.patch import patch

from .test_fix_for import SOURCES, TRAIN, done, make_fix

CASES = {
    "assignment": ("import torch\n\nloader = DataLoader(data)\n", 3),
    "return": ("import torch\ndef make():\n    # for training\n    return DataLoader(data)\n", 4),
    "loop header": ("import torch\nfor x in DataLoader(data):\n    pass\n", 2),
    "one-line suite": ("import torch\nif train: loader = DataLoader(data)\n", 2),
    "several lines": (
        "import torch\nif a:\n    loader = wrap(\n        DataLoader(\n            data,\n        )\n    )\n",
        4,
    ),
    "lambda": ("import torch\nmake = lambda: DataLoader(data)\n", 2),
}

LINE = {"intraop_threads": 16}


@pytest.mark.parametrize("name", CASES)
def test_the_line_stands_before_the_loaders_statement_and_nothing_else_changes(name):
    source, line = CASES[name]
    made = patch(source, "train.py", loader_line=line, changes=LINE)
    compile(made.after, "train.py", "exec")
    added = [each.strip() for each in made.after.splitlines() if each not in source.splitlines()]
    assert added[-1] == KEEP_THREADS
    assert len(added) == 2 and added[0].startswith("#")
    assert [each for each in made.after.splitlines() if each.strip() not in added] == source.splitlines()
    assert made.after.index(KEEP_THREADS) < made.after.index("DataLoader(")
    assert patch(made.after, "train.py", loader_line=line + 2, changes=LINE).diff == ""


def test_blank_lines_stay_above_and_comments_with_their_statement():
    source, line = "import torch\n\n# all of them\nloader = DataLoader(data)\n", 4
    lines = patch(source, "train.py", loader_line=line, changes=LINE).after.splitlines()
    assert lines[1] == "" and lines[3] == KEEP_THREADS
    assert lines[4:] == ["# all of them", "loader = DataLoader(data)"]


@pytest.mark.parametrize(
    ("source", "line", "reason"),
    [
        ("from torch.utils.data import DataLoader\nloader = DataLoader(d)\n", 2, "does not import torch"),
        ("import torch\nloader = make(d)\n", 2, "no DataLoader"),
        ("import torch\nloader = (\n", 2, "could not be parsed"),
    ],
)
def test_where_it_cannot_be_inserted_the_reason_is_said(source, line, reason):
    made = patch(source, "train.py", loader_line=line, changes=LINE)
    assert made.diff == ""
    assert reason in made.refused["intraop_threads"]


def test_the_fix_is_a_patch_that_the_patch_tool_takes(tmp_path):
    fix = done(make_fix(intraop_threads=16))
    assert fix.location == "/home/me/project/train.py:4"
    assert fix.snippet is None
    (tmp_path / "train.py").write_text(TRAIN)
    subprocess.run(["git", "apply", "-"], input=fix.patch, text=True, cwd=tmp_path, check=True)
    assert f"{KEEP_THREADS}\nloader = DataLoader(\n" in (tmp_path / "train.py").read_text()


def test_with_arguments_it_is_one_patch():
    fix = done(make_fix(intraop_threads=16, pin_memory=True))
    assert f"+{KEEP_THREADS}" in fix.patch and "+    pin_memory=True,\n" in fix.patch


@pytest.mark.parametrize("options", [{"sources": {}}, {"loader": None}])
def test_without_the_source_it_is_a_line_to_write_by_hand(options):
    where = {"loader": "/home/me/project/train.py:4", "sources": SOURCES, **options}
    fix = Places(transfers=[], **where).fix_for(make_fix(intraop_threads=16))
    assert fix.patch is None
    assert fix.snippet.startswith(f"{KEEP_THREADS}  # before the loader is first iterated")


def test_a_wait_is_taken_away_by_hand():
    fix = done(make_fix(lazy_sync=True))
    assert fix.patch is None
    assert "loss.detach()" in fix.snippet
