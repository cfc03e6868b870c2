"""When a race may end: what is lost by what would be chosen is little, as far as can be told."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pindiag.gate import unsafe
from pindiag.model import Treatment
from pindiag.plan.contenders import WORTH_KNOWING, changes_one_thing, is_settled
from pindiag.plan.known import Known
from pindiag.race import AS_GOOD_AS_THE_BEST, beyond_noise, chosen, floor, race_rates, standings
from pindiag.stats import Mean, expected_gain, geometric_mean, paired_ratios

LITTLE = 0.01
"""Expected gain, as a log ratio, of what is not taken while nothing leads: half of what counts as equally good."""
LITTLE_BEYOND = 0.003
"""Expected loss, as a log ratio, beyond what counts as equally good: two equal ones are told at 2 % of error."""
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
    taken = chosen(known.journal) or leader
    return told and sum(map(_lost, _rivals(known, taken, ratios))) <= LITTLE_BEYOND


def _beaten(ratio: Mean, best: float) -> bool:
    """Whether what it may bring is less than what the leader brings: no round is worth its sake."""
    return ratio.ci95 is not None and ratio.ci95[1] < max(best, 1.0)


def _rivals(known: Known, taken: str, names: Iterable[str]) -> list[list[float]]:
    """Ratios of the others that may be taken to what is taken, paired within rounds."""
    ratios = paired_ratios(race_rates(known.journal), taken)
    return [ratios[name] for name in names if name in ratios and unsafe(known.journal, name) is None]


def _lost(ratios: Sequence[float]) -> float:
    """What a rival gains beyond what counts as equally good."""
    return expected_gain(geometric_mean([ratio / AS_GOOD_AS_THE_BEST for ratio in ratios]))
