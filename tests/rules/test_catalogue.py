import pytest

from pindiag import rules
from pindiag.errors import UnknownRule

SECTIONS = ("What it means:", "How it is decided:", "Example:", "Fix:", "When to ignore:", "References:")


@pytest.mark.parametrize("rule", rules.catalogue(), ids=lambda rule: rule.code)
def test_every_rule_is_documented_and_gives_reasons_for_its_thresholds(rule):
    text = rules.explain(rule.code)
    assert text == rules.explain(rule.name) == rules.explain(rule.code.lower())
    places = [text.index(section) for section in SECTIONS]
    assert places == sorted(places)
    for option, value in rule.options.items():
        assert f"`{option}`" in text, option
        assert f"{value:g}" in text.replace(" ", ""), option


NOTHING_TO_CHANGE = {"compute_bound", "no_difference", "script_error"}


@pytest.mark.parametrize("rule", rules.catalogue(), ids=lambda rule: rule.code)
def test_its_example_shows_what_was_and_what_is_then(rule):
    example = rule.doc.partition("Example:")[2].partition("Fix:")[0]
    marks = [line.split()[0] for line in example.splitlines() if line.strip().startswith(("before:", "after:"))]
    assert marks == ([] if rule.name in NOTHING_TO_CHANGE else ["before:", "after:"])


def test_codes_and_names_are_unique_and_in_order():
    codes = [rule.code for rule in rules.catalogue()]
    assert codes == sorted(set(codes))
    assert len({rule.name for rule in rules.catalogue()}) == len(codes)


def test_what_a_rule_yields_to_exists():
    names = {rule.name for rule in rules.catalogue()}
    assert {owner for rule in rules.catalogue() for owner in rule.yields_to} <= names


def test_an_unknown_name_brings_near_ones():
    with pytest.raises(UnknownRule, match="pin_thread_bound"):
        rules.explain("pin_thread")
    with pytest.raises(UnknownRule, match="pindiag rules"):
        rules.explain("zzz")


def test_the_table_has_a_row_a_rule():
    rows = rules.markdown_table().splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == [rule.code for rule in rules.catalogue()]
