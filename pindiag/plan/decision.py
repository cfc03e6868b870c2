"""When a race may end: what is lost by taking its leader is little, as far as can be told."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pindiag.model import Treatment
from pindiag.plan.contenders import WORTH_KNOWING, changes_one_thing, is_settled
from pindiag.plan.known import Known
from pindiag.race import beyond_noise, floor, race_rates, standings
from pindiag.stats import Mean, expected_gain, geometric_mean, paired_ratios

LITTLE = 0.01
"""Expected loss, as a log ratio, of taking the leader: half of what counts as equally good."""
NARROW_ENOUGH = 0.2
"""Half-width of the leader's log ratio where no verification tells it better: who leads is decided by then, and whoever
wants to know its gain to 5 % has it verified."""


def decided(known: Known, alive: Sequence[Treatment]) -> bool:
    """Whether more rounds would hardly change what is taken, nor settle a cause.

    Args:
        known: the state of the run.
        alive: configurations that are still in the race, each with an interval.
    """
    known_ratios = standings(known.journal)
    ratios = {made.id: known_ratios[made.id] for made in alive}
    best = max((ratio.ci95[0] for ratio in ratios.values() if ratio.ci95), default=1.0)
    telling = [ratios[made.id] for made in alive if changes_one_thing(made)]
    if not all(is_settled(ratio) or _beaten(ratio, best) for ratio in telling):
        return False
    noise, _ = floor(known.journal)
    leader = max(ratios, key=lambda name: ratios[name].value, default=None)
    if leader is None or not beyond_noise(ratios[leader], noise):
        no_gain = all(ratio.ci95 is not None and ratio.ci95[1] < WORTH_KNOWING for ratio in ratios.values())
        return no_gain and all(expected_gain(ratio) <= LITTLE for ratio in ratios.values())
    told = known.spec.verify or (ratios[leader].half_width or math.inf) <= NARROW_ENOUGH
    return told and sum(map(expected_gain, _rivals(known, leader, ratios))) <= LITTLE


def _beaten(ratio: Mean, best: float) -> bool:
    """Whether what it may bring is less than what the leader brings: no round is worth its sake."""
    return ratio.ci95 is not None and ratio.ci95[1] < max(best, 1.0)


def _rivals(known: Known, leader: str, names: Iterable[str]) -> list[Mean]:
    """Ratios of the others to the leader, paired within rounds."""
    ratios = paired_ratios(race_rates(known.journal), leader)
    return [geometric_mean(ratios[name]) for name in names if name in ratios]
