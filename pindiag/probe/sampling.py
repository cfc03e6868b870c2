"""Which steps of a block are measured in all their parts.

The others are timed as a whole, with their wait and every call that waits for the device: that costs a fraction.
What the parts add up to is reckoned from the steps that were looked at, which are drawn at random: loops repeat what
they do every few steps (accumulated gradients, workers in turns), and an even gap may keep in step with that.
"""

from __future__ import annotations

import random

LEAST_LOOKED_AT = 16
"""Steps of a block, on average; a short block is looked at more closely."""
MEAN_PERIOD = 8
"""Steps from one that is looked at to the next, on average, in a long block."""


class Sampling:
    """Tells how many steps may go by.

    Args:
        steps: how many the block will count.
        chance: draws the gaps; one a launch.
    """

    def __init__(self, steps: int, chance: random.Random) -> None:
        self._chance = chance
        self._period = max(1, min(MEAN_PERIOD, steps // LEAST_LOOKED_AT))
        self._left = self._gap()

    def _gap(self) -> int:
        return self._chance.randrange(2 * self._period - 1)

    def look_at_all(self) -> None:
        """From now on no step goes by."""
        self._period = 1
        self._left = 0

    @property
    def left(self) -> int:
        """How many steps may go by before the next one that is looked at."""
        return self._left

    def pass_over(self, steps: int) -> None:
        """So many go by, and one is looked at after them."""
        self._left -= steps
        if self._left <= 0:
            self._left = self._gap()
