"""A diff carried out gives the text that it was made for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pindiag.fixes import patch_loader, unified_diff
from pindiag.fixes.carried_out import by_file, carried_out, moved

TEXTS = st.lists(st.sampled_from(["a", "b\n", "- c\n", "+ d\r\n", "@@ e\n", "\x0c", "\n", "\\ f\n"]), max_size=30).map(
    "".join
)


@given(TEXTS, TEXTS)
def test_any_diff_leads_from_one_text_to_the_other(before, after):
    hunks = by_file(unified_diff("x.py", before, after)).get("x.py", "")
    assert carried_out(hunks, before) == after


def test_files_are_told_apart():
    diff = unified_diff("/a b/x.py", "1\n", "2\n") + unified_diff("y.py", "3", "4")
    found = by_file(diff)
    assert list(found) == ["a b/x.py", "y.py"]
    assert (carried_out(found["a b/x.py"], "1\n"), carried_out(found["y.py"], "3")) == ("2\n", "4")


def test_a_line_that_is_not_there_is_refused():
    hunks = by_file(unified_diff("x.py", "1\n2\n", "1\n3\n"))["x.py"]
    with pytest.raises(ValueError, match="the lines from 1 on"):
        carried_out(hunks, "0\n1\n2\n")


def test_ends_of_lines_stay_as_they_are():
    source = "import torch\r\nloader = DataLoader(data, num_workers=4)\r\n\x0c\r\nx = 1\r\n"
    made = patch_loader(source, "x.py", 2, {"num_workers": 0})
    assert made.after == source.replace("=4", "=0")
    assert carried_out(by_file(made.diff)["x.py"], source) == made.after


@pytest.mark.parametrize(
    ("before", "after", "line", "where"),
    [
        ("a\nb\nc\n", "a\nb\nc\n", 2, 2),
        ("a\nload(x, 4)\nc\n", "a\n# why\nset(n)\nload(x, 0)\nc\n", 2, 4),
        ("a\nload(x, 4)\nc\n", "a\n# why\nset(n)\nload(x, 0)\nc\n", 3, 5),
        ("load(\n    x,\n)\n", "load(\n    x,\n    y,\n)\n", 1, 1),
        ("a\nb\n", "b\n", 2, 1),
    ],
)
def test_where_a_line_stands_after_a_change(before, after, line, where):
    assert moved(before, after, line) == where
