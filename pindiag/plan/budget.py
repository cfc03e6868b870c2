"""What launches and blocks cost, and what is left for them."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property

from pindiag.journal import Launch
from pindiag.model import Block, FirstStep, Window
from pindiag.plan.known import BLOCK_S, Known

VERIFICATION_SHARE = 0.35
"""Of the budget, held back for the launches that verify the leader: four pairs in five minutes on usual scripts."""
ENDING_SHARE = 0.2
"""Of the race's time, at most held back for `compute_only` and profiler windows."""
FRESH_SHARE = 0.5
"""Of the same, at most held back for treatments that cannot be swapped live."""
WITHOUT_SWEEP_S = 60.0
"""What "where the time goes" takes of a larger budget."""
LEAVING_S = 1.0
"""From the order to stop to the end of a process, until one was seen to leave."""
LEAST_S = 0.1


class Budget:
    """Seconds, as the records show them. What a launch needs before its first training step costs nothing.

    Args:
        known: the state of the run.
        to_verify_s: tells what the verification needs; no more than its share is held back for it.
    """

    def __init__(self, known: Known, to_verify_s: Callable[[], float] = lambda: math.inf) -> None:
        self._known = known
        self._to_verify_s = to_verify_s
        short = not known.spec.sweep and not known.spec.fresh
        self.whole_s = min(known.spec.budget_s, WITHOUT_SWEEP_S) if short else known.spec.budget_s

    @cached_property
    def spent_s(self) -> float:
        """What all launches took so far."""
        return sum(launch.spent_s for launch in self._known.journal.launches)

    def left_s(self, share: float = 1.0) -> float:
        """What is left of a share of the budget."""
        return self.whole_s * share - self.spent_s

    @cached_property
    def race_share(self) -> float:
        """The race leaves to the verification what it needs, or its share, where at least two pairs fit into it."""
        wanted = self._known.spec.sweep and self._known.spec.verify
        fits = 4 * self.launch_s <= VERIFICATION_SHARE * self.whole_s
        return 1 - min(VERIFICATION_SHARE, self._to_verify_s() / self.whole_s) if wanted and fits else 1.0

    # --------------------------------------------------------------------------------------------- fresh launches

    @cached_property
    def launch_s(self) -> float:
        """What a fresh launch takes, from those that went well; later ones have no profiler window.

        Before the first, what the first block of the run took, and what a scout took to leave.
        """
        launches = self._known.journal.launches
        went = [launch for launch in launches if launch.isolation == "fresh" and launch.measured and launch.spent_s > 0]
        plain = [launch.spent_s for launch in went if launch.order is not None and not launch.order.profile]
        known_s = plain or [launch.spent_s for launch in went] or self._first_s or [BLOCK_S]
        return max(statistics.median(known_s), LEAST_S)

    @property
    def _first_s(self) -> list[float]:
        launches = self._known.journal.launches
        leaving_s = sum(launch.spent_s for launch in launches if launch.purpose == "scout") or LEAVING_S
        return [cost + leaving_s for launch in self._known.discoveries for _, cost in block_costs_s(launch)[:1]]

    # ------------------------------------------------------------------------------------------------- live blocks

    def block_s(self, trial: str) -> float:
        """What a live block of a treatment takes, from the end of the one before; where unknown, what others take."""
        return statistics.median(self._by_trial[trial]) if trial in self._by_trial else self.any_block_s

    def blocks_s(self, trials: Iterable[str]) -> float:
        """What a live block of each takes together."""
        return sum(self.block_s(trial) for trial in trials)

    @cached_property
    def any_block_s(self) -> float:
        """What a live block takes."""
        every = [cost for costs in self._by_trial.values() for cost in costs]
        return max(statistics.median(every or [BLOCK_S]), LEAST_S)

    @cached_property
    def _by_trial(self) -> dict[str, list[float]]:
        costs: dict[str, list[float]] = defaultdict(list)
        for launch in self._known.live_launches:
            earlier_s = _started_before_s(launch)
            for trial, cost in block_costs_s(launch):
                costs[self._known.journal.trial(trial)].append(cost + earlier_s)
                earlier_s = 0.0
        return dict(costs)

    @cached_property
    def window_s(self) -> float:
        """What a profiler window takes with the start of its workers."""
        windows = [w.seconds for launch in self._known.journal.launches for w in launch.all(Window)]
        return statistics.median(windows) if windows else self.any_block_s


def _started_before_s(launch: Launch) -> float:
    """The first block of the first launch finds workers there; a later one of its treatment has to start them."""
    starts = launch.worker_starts if launch.purpose == "discover" else []
    return next(((born.first_batch_ms or 0.0) / 1e3 for born in starts), 0.0)


def block_costs_s(launch: Launch) -> list[tuple[str, float]]:
    """Trial and seconds of each block of a live launch: from the end of the block before, or the first step."""
    first = launch.first(FirstStep)
    if first is None:
        return []
    costs = []
    before_ns = first.t_ns
    for block in launch.all(Block):
        costs.append((block.trial, max(block.t_ns - before_ns, 0) / 1e9))
        before_ns = block.t_ns
    return costs
