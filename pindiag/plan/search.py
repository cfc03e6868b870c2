"""Which configurations to try next: few at first, later ones by what is known, and none that cannot win."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property

from pindiag.model import Treatment
from pindiag.plan.grid import most_telling, whole_grid
from pindiag.plan.known import Known
from pindiag.plan.prediction import CLEARLY, Bound, Prediction
from pindiag.plan.threads import Threads
from pindiag.plan.treatments import queue
from pindiag.race import AS_GOOD_AS_THE_BEST, cost
from pindiag.stats import FEWEST_FOR_INTERVAL

USUALLY_TRIED = 5
"""Configurations beside the baseline that a search tries while their bounds leave room; beyond, noise may have blurred
these, and whoever joins has to promise more than the leader has."""
MOST_TRIED = 8
NEARLY = 1.05
"""Of candidates that promise as much within this ratio, the one most like the leader is tried first."""


class Search:
    """Candidates of a live race whose configurations no grid names.

    Args:
        known: the state of the run.
        threads: what the main thread has in a fresh process.
    """

    def __init__(self, known: Known, threads: Threads) -> None:
        self._known = known
        self._threads = threads

    @cached_property
    def prediction(self) -> Prediction:
        """Bounds from all that was measured so far."""
        return Prediction(self._known, self._threads)

    @cached_property
    def openers(self) -> list[Treatment]:
        """Members of the first round."""
        baseline = self._known.journal.baseline
        if baseline is None:
            return []
        return self._usable(most_telling(baseline, self._known.spec.usable_cpus, self._known.accelerator))

    def next(self, place: int) -> Treatment | None:
        """The candidate that joins a round after the first; None where none is worth it.

        Args:
            place: of the round among those of the race; whoever joins it needs three of them.
        """
        late = place > self._known.most_rounds - FEWEST_FOR_INTERVAL + 1
        if late or len(self._tried) >= MOST_TRIED:
            return None
        worth = [made for made in self.untried if self.is_worth(self.bounds[made.id])]
        if len(self._tried) >= USUALLY_TRIED:
            worth = [made for made in worth if self._promise(made) > self.prediction.leader.value]
        most = max(map(self._promise, worth), default=0.0)
        near = [made for made in worth if self._promise(made) * NEARLY >= most]
        return min(near, key=lambda made: (*_unlike(made, self.prediction.best or made), cost(made)), default=None)

    @cached_property
    def untried(self) -> list[Treatment]:
        """All that a search might try and did not."""
        baseline = self._known.journal.baseline
        if baseline is None:
            return []
        grid = whole_grid(baseline, self._known.spec.usable_cpus, self._known.accelerator)
        return [made for made in self._usable(grid) if made.id not in self._tried]

    @cached_property
    def bounds(self) -> dict[str, Bound | None]:
        """What each of the untried reaches at most."""
        return {made.id: self.prediction.most(made) for made in self.untried}

    def is_worth(self, most: Bound | None) -> bool:
        """Whether what a configuration may reach is more than what counts as equally good."""
        return most is None or most.ratio > self.prediction.to_beat * AS_GOOD_AS_THE_BEST

    def promises_more(self, made: Treatment) -> bool:
        """Whether a candidate promises clearly more than the leader has."""
        return self._promise(made) > self.prediction.leader.value * CLEARLY

    def reason(self, made: Treatment) -> str:
        """Why a candidate was not run."""
        most = self.bounds[made.id]
        if most is None:
            return "not run: others promised more"
        reached = f"not run: predicted at most {most.ratio * self.prediction.baseline_rate:.0f} samples/s, because"
        return f"{reached} {most.because}"

    @cached_property
    def predicted(self) -> dict[str, float]:
        """Samples/s that the untried reach at most."""
        rate = self.prediction.baseline_rate
        return {name: most.ratio * rate for name, most in self.bounds.items() if most is not None}

    def _promise(self, made: Treatment) -> float:
        """Half way between what it may reach at most and what measured configurations that are like it reached.

        Of the one most like it in transfers and the one most like it in workers, the faster: no workers with the same
        transfers say little of many workers.
        """
        unlike = {other.id: _unlike(made, other) for other, _ in self.prediction.measured}
        _, alike = min(self.prediction.measured, key=lambda each: unlike[each[0].id])
        _, as_many = min(self.prediction.measured, key=lambda each: unlike[each[0].id][::-1])
        ratio = max(alike, as_many)
        most = self.bounds[made.id]
        return ratio * NEARLY if most is None else math.sqrt(ratio * most.ratio)

    def _usable(self, candidates: Iterable[Treatment]) -> list[Treatment]:
        return [made for made in candidates if not self._known.out(made.id) and not self._known.runs_fresh(made)]

    @cached_property
    def _tried(self) -> set[str]:
        """Configurations beside the baseline that rounds were to run."""
        orders = [order for launch in self._known.live_launches for order in launch.orders]
        members = {made.id for order in orders for made in order.planned if made.competes} - {self._known.baseline}
        return members - self._known.journal.skipped.keys()


def _unlike(made: Treatment, other: Treatment) -> tuple[bool, bool, float]:
    """How unlike another configuration one is: other transfers, fewer workers, how many times the batches in flight."""
    one, two = made.configuration, other.configuration
    transfers = (one.pin_memory, one.non_blocking) != (two.pin_memory, two.non_blocking)
    times = abs(math.log2((1 + queue(one)) / (1 + queue(two))))
    return transfers, one.num_workers < two.num_workers, times
