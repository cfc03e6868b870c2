"""Who stays in the race from one round to the next."""

from __future__ import annotations

from collections.abc import Sequence

from pindiag.model import Treatment
from pindiag.plan.known import Known
from pindiag.race import beside, floor, standings
from pindiag.stats import FEWEST_FOR_INTERVAL, Mean

FEWEST_TRIED = 5
"""Configurations beside the baseline that the first round tries, however short the budget, while it lasts."""
FEWEST_CONTENDERS = 3
"""Rounds give way before fewer configurations than these stay in the race."""
WORTH_KNOWING = 1.05
"""A cause whose removal brings less is ruled out."""
BY_CHANCE = 0.05


def contenders(known: Known, members: Sequence[str]) -> list[Treatment]:
    """Members of the last round that are neither given up nor beaten.

    The two fastest come first, then what settles a cause, then the others, then other batch sizes, which do not
    compete and stay until they have an interval; whoever has no room is cut from the end.
    """
    ratios = standings(known.journal)
    noise, _ = floor(known.journal)
    best = max((ratio.ci95[0] for ratio in ratios.values() if ratio.ci95 is not None), default=1.0)
    running = [known.journal.treatments[trial] for trial in members if not known.out(trial)]
    alive = [made for made in running if made.competes and not _leaves(made, ratios.get(made.id), best, noise)]
    alive.sort(key=lambda made: ratios[made.id].value if made.id in ratios else 0.0, reverse=True)
    essential = [made for made in alive[2:] if changes_one_thing(made)]
    others = [made for made in alive[2:] if not changes_one_thing(made)]
    told = {trial for trial, ratio in beside(known.journal).items() if ratio.count >= FEWEST_FOR_INTERVAL}
    sizes = [made for made in running if not made.competes and made.id not in told]
    return [*alive[:2], *essential, *others, *sizes]


def _leaves(made: Treatment, ratio: Mean | None, best_lower_bound: float, noise: float | None) -> bool:
    """Whether nothing more is to be learned of a configuration.

    One that changes a single thing settles a cause, so it stays, though beaten, until it is settled itself.
    """
    if ratio is None or ratio.ci95 is None:
        return False
    beaten = ratio.ci95[1] < best_lower_bound or ratio.ci95[1] < 1 / (noise or 1.0)
    return beaten and (is_settled(ratio) or not changes_one_thing(made))


def changes_one_thing(made: Treatment) -> bool:
    """A single argument, or the three-way comparison (no pin; pin; pin and non_blocking) at the script's workers."""
    return len(made.changes) == 1 or made.changes.keys() <= {"pin_memory", "non_blocking"}


def is_settled(ratio: Mean) -> bool:
    """A gain of 5 % is excluded, or the difference is beyond chance."""
    excluded = ratio.ci95 is not None and ratio.ci95[1] < WORTH_KNOWING
    return excluded or (ratio.p is not None and ratio.p < BY_CHANCE)
