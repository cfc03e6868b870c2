"""Pairs of fresh launches, leader and baseline in alternating order, that did not choose what they verify.

A tweak is verified as a configuration is: the probe applies it from the first step on.
"""

from __future__ import annotations

import math
import statistics
from functools import cached_property

import msgspec

from pindiag.journal import Launch
from pindiag.model import Block, BlockOrder, LaunchOrder, Treatment
from pindiag.plan.budget import LEAST_S, LEAVING_S, VERIFICATION_SHARE, Budget
from pindiag.plan.gates import to_gate
from pindiag.plan.known import BLOCK_S, Known
from pindiag.race import floor, verification
from pindiag.stats import CONFIDENCE, student_quantile

FEWEST_PAIRS = 4
"""At 5 % noise four pairs give a half-width of about 9 %, two would give 37 %."""
MOST_PAIRS = 12
NARROW_ENOUGH = 0.05
"""Half-width of the verified log ratio at which more pairs add nothing that a reader acts on."""

SPARE = 1.1
"""Launches differ in what they take."""
UPPER = (1 + CONFIDENCE) / 2
EPOCHS = 2
"""Two show what is paid again with every epoch: start-up of workers, and validation between them."""
EPOCHS_LIVED = 4
"""As many, where they fit, for workers that live on: the first epoch pays their start either way."""
LEAST_BATCHES = 2
"""An epoch of fewer has no step beside its first."""


class Verification:
    """What the race has chosen, against the script as written."""

    share = VERIFICATION_SHARE
    """Of the budget."""

    def __init__(self, known: Known, budget: Budget) -> None:
        self._known = known
        self._budget = budget

    @cached_property
    def begun(self) -> bool:
        """Whether the race is over."""
        return any(launch.purpose == "verify" for launch in self._known.journal.launches)

    def next(self) -> LaunchOrder | None:
        """The next launch of a pair; None when enough is known, or nothing is to be verified."""
        baseline, candidate = self._known.journal.baseline_id, self._candidate
        if baseline is None or candidate is None or self._known.out(candidate):
            return None
        if self._lives_on and not self._whole:
            return None
        number = max(self._pairs, default=1)
        turns = [baseline, candidate] if number % 2 else [candidate, baseline]
        ran = [self._known.trial(launch) for launch in self._pairs.get(number, [])]
        left = [trial for trial in turns if trial not in ran]
        if not left and self._settled(candidate):
            return None
        if not left:
            number, left = number + 1, turns[::-1]
        if sum(self._launch_s(trial) for trial in left) > self._budget.left_s():
            return None
        return self._order(left[0], self._block(number, left[0]))

    @property
    def needs_s(self) -> float:
        """What it takes at the noise of the race; infinite while nothing is to be verified."""
        candidate = self._candidate
        if candidate is None:
            return math.inf
        pair_s = self._launch_s(self._known.baseline) + self._launch_s(candidate)
        return SPARE * self._pairs_needed * pair_s

    @property
    def _pairs_needed(self) -> int:
        """As many as are narrow enough where pairs of launches differ as pairs of baseline blocks do."""
        noise, rounds = floor(self._known.journal)
        if noise is None:
            return MOST_PAIRS
        spread = math.log(noise) * math.sqrt(rounds) / student_quantile(UPPER, rounds)
        pairs = range(FEWEST_PAIRS, MOST_PAIRS)
        narrow = (n for n in pairs if student_quantile(UPPER, n - 1) * spread / math.sqrt(n) <= NARROW_ENOUGH)
        return next(narrow, MOST_PAIRS)

    @property
    def _candidate(self) -> str | None:
        return self._known.candidate

    @property
    def _lives_on(self) -> bool:
        """Whether it is about workers that live on: blocks of steps would tell nothing of it."""
        made = self._known.living_on
        return made is not None and made.id == self._candidate

    @property
    def _saves_later(self) -> bool:
        """Whether its gain is in the epochs after the first."""
        return self._lives_on

    def _order(self, trial: str, block: BlockOrder) -> LaunchOrder:
        return LaunchOrder(
            purpose="verify",
            treatment=self._made(trial),
            blocks=[block],
            natural_epochs=self._known.natural_epochs,
            gates=to_gate(self._known.journal, trial),
        )

    def _made(self, trial: str) -> Treatment:
        lives_on = self._known.living_on
        return lives_on if lives_on and lives_on.id == trial else self._known.journal.treatments[trial]

    # ------------------------------------------------------------------------------------------------ whole epochs

    def _block(self, number: int, trial: str) -> BlockOrder:
        block = self._known.block(number, trial)
        if not self._whole:
            return block
        return msgspec.structs.replace(block, epochs=self._epochs, steps=self._epochs * self._batches)

    @cached_property
    def _whole(self) -> bool:
        """Whether two natural epochs of either fit a launch's share of the budget, and none turned out not to."""
        candidate = self._candidate
        if self._known.spec.steps is not None or self._batches < LEAST_BATCHES or candidate is None:
            return False
        if self._answers_for_the_device:
            return False
        if not all(self._covers(block) for launch in self._launches for block in launch.counted):
            return False
        return all(self._launch_s(trial, whole=True) <= self._share_s for trial in (self._known.baseline, candidate))

    def _covers(self, block: Block) -> bool:
        """Whether whole epochs were counted; for workers that live on, more than the one whose start is paid anyway."""
        return block.epochs is not None and (block.epochs.epochs >= EPOCHS or not self._lives_on)

    @property
    def _share_s(self) -> float:
        """A launch's share of the budget."""
        return self.share * self._budget.whole_s / (2 * FEWEST_PAIRS)

    @property
    def _answers_for_the_device(self) -> bool:
        """Whether calls that wait get what they got before: between its epochs that would mislead the script."""
        made = self._known.journal.treatments.get(self._candidate or "")
        return made is not None and made.tweak == "lazy_sync"

    @cached_property
    def _batches(self) -> int:
        """Of a natural epoch; 0 where the loader has no length."""
        found = self._known.journal.chosen
        return 0 if found is None or found.iterable else found.batches_per_epoch or 0

    @cached_property
    def _epochs(self) -> int:
        """Two, or as many short ones as last as long as a block; for workers that live on, four where they fit."""
        shortest_s = max(min(self._epoch_s(trial) for trial in (self._known.baseline, self._candidate or "")), LEAST_S)
        fewest = max(EPOCHS, math.ceil(BLOCK_S / shortest_s))
        fitting = int((self._share_s - LEAVING_S) / shortest_s) if self._saves_later else 0
        return max(fewest, min(fitting, EPOCHS_LIVED))

    def _launch_s(self, trial: str, *, whole: bool | None = None) -> float:
        """What a launch takes of the budget: as an earlier one did, else as its epochs are reckoned."""
        took = [launch.spent_s for launch in self._launches if launch.measured and self._known.trial(launch) == trial]
        if took:
            return statistics.median(took)
        return self._epochs * self._epoch_s(trial) + LEAVING_S if whole or self._whole else self._budget.launch_s

    def _epoch_s(self, trial: str) -> float:
        """By the blocks and starts of workers so far; what the script does between its epochs is not known yet.

        Workers that live on had no block: they are taken to be as slow as the script as written.
        """
        journal = self._known.journal
        trial = self._known.baseline if self._lives_on else trial
        step_s = [
            block.seconds / block.steps
            for block in journal.blocks("discover", "round")
            if journal.trial(block.trial) == trial and block.steps
        ]
        chose = [launch for launch in journal.launches if launch.purpose != "verify"]
        startup_s = journal.startup_s(chose, trial) or 0.0
        return startup_s + self._batches * statistics.median(step_s) if step_s else float("inf")

    @property
    def launches_left(self) -> int:
        """How many launches are to come, as it looks now."""
        if not self._known.spec.sweep or not self._known.spec.verify:
            return 0
        return max(2 * FEWEST_PAIRS - sum(len(pair) for pair in self._pairs.values()), 0)

    @cached_property
    def _pairs(self) -> dict[int, list[Launch]]:
        pairs: dict[int, list[Launch]] = {}
        for launch in self._launches:
            pairs.setdefault(launch.round, []).append(launch)
        return pairs

    @cached_property
    def _launches(self) -> list[Launch]:
        verifying = [launch for launch in self._known.journal.launches if launch.purpose == "verify"]
        return [launch for launch in verifying if not launch.past_natural_end and not launch.lost]

    def _settled(self, candidate: str) -> bool:
        ratio = verification(self._known.journal, candidate)
        narrow = ratio is not None and ratio.half_width is not None and ratio.half_width <= NARROW_ENOUGH
        enough = ratio is not None and ratio.count >= min(FEWEST_PAIRS, self._known.spec.rounds)
        return (enough and narrow) or len(self._pairs) >= min(MOST_PAIRS, 2 * self._known.spec.rounds)
