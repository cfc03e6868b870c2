import math

import pytest

from pindiag.analysis.pairs import between
from pindiag.model import BlockFigures


class Raced:
    """Of an analysis, what a comparison reads."""

    def __init__(self, rates):
        self.blocks = [
            block(number, round_, trial, rate)
            for number, (round_, trial, rate) in enumerate(
                ((round_, trial, rate) for trial, by_round in rates.items() for round_, rate in by_round.items()), 1
            )
        ]
        self.trials = [OfTrial([each.id for each in self.blocks if each.trial == trial]) for trial in rates]


class OfTrial:
    def __init__(self, blocks):
        self.blocks = blocks


def block(number, round_, trial, rate):
    return BlockFigures(
        id=number,
        launch=1,
        round=round_,
        trial=trial,
        settle_steps=5,
        steps=10,
        samples=int(rate * 2),
        seconds=2.0,
        status="counted",
        reason=None,
        purpose="round",
        journal="launch-001.jsonl:1",
    )


def test_two_trials_are_paired_in_the_rounds_that_both_ran_in():
    compare = between(Raced({"a": {1: 200, 2: 440, 3: 100}, "b": {1: 100, 2: 200, 3: 50, 4: 9000}}))
    ratio = compare("a", "b")
    assert ratio.ratio == pytest.approx(math.exp((2 * math.log(2) + math.log(2.2)) / 3))
    assert ratio.rounds == 3
    assert ratio.ci95[0] < ratio.ratio < ratio.ci95[1]
    assert compare("b", "a").ratio == pytest.approx(1 / ratio.ratio)


def test_trials_without_a_common_round_have_no_ratio():
    compare = between(Raced({"a": {1: 200}, "b": {2: 100}}))
    assert compare("a", "b") is None
    assert compare("a", "unknown") is None


def test_blocks_outside_the_race_do_not_count():
    raced = Raced({"a": {1: 200, 2: 200}, "b": {1: 100, 2: 100}})
    raced.trials[0].blocks.pop()
    assert between(raced)("a", "b").rounds == 1
