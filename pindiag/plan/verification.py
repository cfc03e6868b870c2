"""Pairs of fresh launches, leader and baseline in alternating order, that did not choose what they verify."""

from __future__ import annotations

from functools import cached_property

from pindiag.journal import Launch
from pindiag.model import LaunchOrder
from pindiag.plan.budget import Budget
from pindiag.plan.gates import to_gate
from pindiag.plan.known import Known
from pindiag.race import verification

FEWEST_PAIRS = 4
"""At 5 % noise four pairs give a half-width of about 9 %, two would give 37 %."""
MOST_PAIRS = 12
NARROW_ENOUGH = 0.05
"""Half-width of the verified log ratio at which more pairs add nothing that a reader acts on."""


class Verification:
    """What the race has chosen, against the script as written."""

    def __init__(self, known: Known, budget: Budget) -> None:
        self._known = known
        self._budget = budget

    @cached_property
    def begun(self) -> bool:
        """Whether the race is over."""
        return any(launch.purpose == "verify" for launch in self._known.journal.launches)

    def next(self) -> LaunchOrder | None:
        """The next launch of a pair; None when enough is known, or nothing is to be verified."""
        baseline, candidate = self._known.journal.baseline_id, self._known.candidate
        if baseline is None or candidate is None or self._known.out(candidate):
            return None
        number = max(self._pairs, default=1)
        turns = [baseline, candidate] if number % 2 else [candidate, baseline]
        ran = [self._known.trial(launch) for launch in self._pairs.get(number, [])]
        left = [trial for trial in turns if trial not in ran]
        if not left and self._settled(candidate):
            return None
        if not left:
            number, left = number + 1, turns[::-1]
        if len(left) * self._budget.launch_s > self._budget.left_s():
            return None
        return LaunchOrder(
            purpose="verify",
            treatment=self._known.journal.treatments[left[0]],
            blocks=[self._known.block(number, left[0])],
            natural_epochs=self._known.natural_epochs,
            gates=to_gate(self._known.journal, left[0]),
        )

    @property
    def launches_left(self) -> int:
        """How many launches are to come, as it looks now."""
        if not self._known.spec.sweep or not self._known.spec.verify:
            return 0
        return max(2 * FEWEST_PAIRS - sum(len(pair) for pair in self._pairs.values()), 0)

    @cached_property
    def _pairs(self) -> dict[int, list[Launch]]:
        pairs: dict[int, list[Launch]] = {}
        for launch in self._known.journal.launches:
            if launch.purpose == "verify" and not launch.past_natural_end and not launch.lost:
                pairs.setdefault(launch.round, []).append(launch)
        return pairs

    def _settled(self, candidate: str) -> bool:
        ratio = verification(self._known.journal, candidate)
        narrow = ratio is not None and ratio.half_width is not None and ratio.half_width <= NARROW_ENOUGH
        enough = ratio is not None and ratio.count >= min(FEWEST_PAIRS, self._known.spec.rounds)
        return (enough and narrow) or len(self._pairs) >= min(MOST_PAIRS, 2 * self._known.spec.rounds)
