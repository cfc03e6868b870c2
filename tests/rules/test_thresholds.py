"""Moving any threshold by 20 % changes no answer of a recording: no option is tuned to a sample.

An answer is a primary cause that is confirmed. Where experiments left it open, which of several open causes stands
first may change, but none becomes confirmed by it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from recordings import recordings

from pindiag import rules
from pindiag.api import outcome
from pindiag.rules import engine

MOVED = (0.8, 1.2)


def moved(option, factor):
    """The rules, with one option of one of them moved."""
    rule, name = option
    other = replace(rule, options={**rule.options, name: rule.options[name] * factor})
    return [other if each is rule else each for each in rules.catalogue()]


OPTIONS = [(rule, name) for rule in rules.catalogue() for name in rule.options]


def first(inputs, catalogue):
    return rules.primary(engine.judge(inputs, catalogue))


def differ(before, after):
    """Whether a confirmed cause came or went."""
    return before.cause != after.cause and "confirmed" in (before.status, after.status)


@pytest.mark.parametrize("recording", recordings(), ids=lambda each: f"{each.archive.parent.name}-{each.name}")
def test_no_answer_hangs_on_a_threshold(recording, tmp_path):
    inputs = outcome.inputs_of(recording.unpack(tmp_path))
    said = first(inputs, rules.catalogue())
    assert said is not None
    other = {
        f"{rule.name}.{name} x {factor}": (said.cause, found.cause)
        for rule, name in OPTIONS
        for factor in MOVED
        if differ(said, found := first(inputs, moved((rule, name), factor)))
    }
    assert other == {}


def test_an_option_that_decides_is_moved():
    rule = next(each for each in rules.catalogue() if each.name == "cpu_bound")
    lower = next(each for each in moved((rule, "wait_share"), 0.8) if each.name == "cpu_bound")
    assert lower.options == {**rule.options, "wait_share": rule.options["wait_share"] * 0.8}
    assert len(OPTIONS) > len(rules.catalogue()) / 2
