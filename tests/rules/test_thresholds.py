"""Moving any threshold by 20 % changes no answer of a recording: none is tuned to a sample.

An answer is the primary cause, confirmed or open, with its status, and all causes that are confirmed. What an
interval has to show is no threshold of ours: its level of 95 %, and the gain of 5 % that is worth a change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from recordings import recordings

from pindiag import rules
from pindiag.rules import ceilings, engine, rule, settle, supply
from tests.recorded_runs import inputs_of, label

MOVED = (0.8, 1.2)
OPTIONS = [(each, name) for each in rules.catalogue() for name in each.options]
SHARED = [
    ("AS_SLOW", 1, [ceilings]),
    ("SUSPECT", 1, [rule, settle]),
    ("HIGH", 1, [settle]),
    ("MEDIUM", 1, [settle]),
    ("AT_WORK", 0, [supply]),
]
"""Thresholds that rules share: name, where its scale begins (a ratio's at 1), and who reads it."""


def moved(option, factor):
    """The rules, with one option of one of them moved."""
    rule, name = option
    other = replace(rule, options={**rule.options, name: rule.options[name] * factor})
    return [other if each is rule else each for each in rules.catalogue()]


@contextmanager
def shared(name, start, readers, factor) -> Iterator[None]:
    """A threshold that rules share, moved for a while."""
    with pytest.MonkeyPatch.context() as patched:
        for reader in readers:
            patched.setattr(reader, name, start + (getattr(reader, name) - start) * factor)
        yield


def answer(inputs, catalogue):
    findings = engine.judge(inputs, catalogue)
    first = rules.primary(findings)
    return first.cause, first.status, {each.cause for each in findings if each.status == "confirmed"}


@pytest.mark.parametrize("recording", recordings(), ids=label)
def test_no_answer_hangs_on_a_threshold(recording):
    inputs = inputs_of(recording)
    said = answer(inputs, rules.catalogue())
    found = {
        f"{option[0].name}.{option[1]} x {factor}": answer(inputs, moved(option, factor))
        for option in OPTIONS
        for factor in MOVED
    }
    for name, start, readers in SHARED:
        for factor in MOVED:
            with shared(name, start, readers, factor):
                found[f"{name} x {factor}"] = answer(inputs, rules.catalogue())
    assert {where: other for where, other in found.items() if other != said} == {}


def test_an_option_that_decides_is_moved():
    rule = next(each for each in rules.catalogue() if each.name == "cpu_bound")
    lower = next(each for each in moved((rule, "wait_share"), 0.8) if each.name == "cpu_bound")
    assert lower.options == {**rule.options, "wait_share": rule.options["wait_share"] * 0.8}
    assert len(OPTIONS) > len(rules.catalogue()) / 2


def test_so_is_a_shared_threshold_and_only_for_a_while():
    before = rule.SUSPECT
    with shared("SUSPECT", 1, [rule, settle], 0.8):
        assert rule.SUSPECT == settle.SUSPECT == pytest.approx(1 + (before - 1) * 0.8)
    assert rule.SUSPECT == settle.SUSPECT == before
