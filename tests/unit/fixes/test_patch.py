import ast
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pindiag.fixes import patch_loader, patch_non_blocking, unified_diff

HERE = Path(__file__).parent
LOADER = yaml.safe_load((HERE / "loader_cases.yaml").read_text())
TRANSFER = yaml.safe_load((HERE / "transfer_cases.yaml").read_text())


def by_name(case):
    return case["name"]


@pytest.mark.parametrize("case", LOADER, ids=by_name)
def test_loader_call(case):
    patch = patch_loader(case["before"], "train.py", case.get("line", 1), case["changes"])
    assert patch.after == case.get("after", case["before"])
    assert patch.refused.keys() == case.get("refused", {}).keys()
    for name, part in case.get("refused", {}).items():
        assert part in patch.refused[name]


@pytest.mark.parametrize("case", [case for case in LOADER if "after" in case], ids=by_name)
def test_loader_call_edited_twice_is_edited_once(case):
    again = patch_loader(case["after"], "train.py", case.get("line", 1), case["changes"])
    assert again.after == case["after"]
    assert again.diff == ""


@pytest.mark.parametrize("case", TRANSFER, ids=by_name)
def test_transfer_call(case):
    patch = patch_non_blocking(case["before"], "train.py", case.get("lines", [1]), case.get("value", True))
    assert patch.after == case.get("after", case["before"])
    assert case.get("refused", "") in patch.refused.get("non_blocking", "")
    assert bool(patch.refused) == ("refused" in case)
    again = patch_non_blocking(patch.after, "train.py", case.get("lines", [1]), case.get("value", True))
    assert again.diff == ""


KEYWORDS = {
    "batch_size": "64",
    "shuffle": "True",
    "num_workers": "4",
    "pin_memory": "False",
    "prefetch_factor": "4",
    "persistent_workers": "True",
    "collate_fn": "collate",
}
ENDS = ["", ",", ",  # a comment, with (brackets"]


@st.composite
def loader_sources(draw):
    names = draw(st.lists(st.sampled_from(sorted(KEYWORDS)), unique=True))
    style = draw(st.sampled_from(["line", "hanging", "aligned"]))
    parts = ["data", *(f"{name}={KEYWORDS[name]}" for name in names)]
    if style == "line":
        return f"loader = DataLoader({', '.join(parts)}{draw(st.sampled_from(['', ',']))})\n"
    if style == "aligned":
        return "loader = DataLoader(" + (",\n" + " " * 20).join(parts) + ")\n"
    *before, last = parts
    ends = [draw(st.sampled_from(ENDS[1:])) for _ in before]
    lines = [f"    {part}{end}\n" for part, end in zip(before, ends)]
    return "loader = DataLoader(\n" + "".join(lines) + f"    {last}{draw(st.sampled_from(ENDS))}\n)\n"


FORMS = {
    "call": ("loader = DataLoader(\n    data,\n{}\n)\n", "{}={},{}", 1),
    "braces": ("options = {{\n{}\n}}\nloader = DataLoader(data, **options)\n", '"{}": {},{}', None),
    "dict call": ("options = dict(\n{}\n)\nloader = DataLoader(data, **options)\n", "{}={},{}", None),
    "inside": ("loader = DataLoader(data, **dict(\n{}\n))\n", "{}={},{}", 1),
}
COMMENTS = ["", "  # why", "  # {braces}, (brackets", "  # ä"]


@given(
    st.sampled_from(sorted(FORMS)),
    st.lists(st.tuples(st.sampled_from(sorted(KEYWORDS)), st.sampled_from(COMMENTS)), unique_by=lambda pair: pair[0]),
    st.fixed_dictionaries(
        {},
        optional={"num_workers": st.sampled_from([2, 16]), "pin_memory": st.booleans(), "batch_size": st.just(8)},
    ),
)
def test_wherever_the_arguments_stand_only_the_lines_of_what_changes_differ(form, said, changes):
    text, item, line = FORMS[form]
    source = "# first\n" + text.format("\n".join(f"    {item.format(name, KEYWORDS[name], end)}" for name, end in said))
    line = source.count("\n") if line is None else line + 1
    patch = patch_loader(source, "train.py", line, changes)
    ast.parse(patch.after)
    assert not patch.refused
    assert patch_loader(patch.after, "train.py", line, changes).diff == ""
    assert [each for each in patch.after.splitlines() if "#" in each and not is_about(each, changes)] == [
        each for each in source.splitlines() if "#" in each and not is_about(each, changes)
    ]
    for name, end in said:
        written = f"    {item.format(name, changes.get(name, KEYWORDS[name]), end)}"
        assert written in patch.after.splitlines()
    gone = [each for each in source.splitlines() if each not in patch.after.splitlines()]
    ends_call = ("loader = DataLoader(data, **options)", "))")
    assert all(is_about(each, changes) or each in ends_call for each in gone), "a keyword is added at the call's end"


def is_about(line, changes):
    return any(name in line for name in changes)


@given(
    loader_sources(),
    st.fixed_dictionaries(
        {},
        optional={
            "num_workers": st.sampled_from([0, 2, 16]),
            "pin_memory": st.booleans(),
            "prefetch_factor": st.sampled_from([2, 8]),
            "persistent_workers": st.booleans(),
        },
    ),
)
def test_any_call_parses_afterwards_says_what_was_asked_and_keeps_the_rest(source, changes):
    if changes.get("num_workers") == 0:
        changes = {"num_workers": 0} | {key: changes[key] for key in ("pin_memory",) if key in changes}
    patch = patch_loader(source, "train.py", 1, changes)
    said = {each.arg: ast.literal_eval(each.value) for each in keywords(patch.after) if each.arg in changes}
    assert all(said.get(name, default(name)) == value for name, value in changes.items())
    dropped = {"prefetch_factor", "persistent_workers"} if changes.get("num_workers") == 0 else set()
    before = {each.arg: ast.dump(each.value) for each in keywords(source)}
    after = {each.arg: ast.dump(each.value) for each in keywords(patch.after)}
    assert {k: v for k, v in before.items() if k not in {*changes, *dropped}}.items() <= after.items()
    if not dropped & before.keys():
        assert patch.after.count("# a comment") == source.count("# a comment")
    assert patch_loader(patch.after, "train.py", 1, changes).diff == ""


def keywords(source):
    return ast.parse(source).body[0].value.keywords


def default(name):
    return {"num_workers": 0, "pin_memory": False, "persistent_workers": False}.get(name)


def test_a_diff_names_both_sides_and_a_missing_newline():
    diff = unified_diff("/home/me/train.py", "a\nb", "a\nc")
    assert diff.startswith("--- a/home/me/train.py\n+++ b/home/me/train.py\n@@ -1,2 +1,2 @@\n")
    assert diff.count("\\ No newline at end of file\n") == 2
    assert unified_diff("train.py", "a\n", "a\n") == ""
