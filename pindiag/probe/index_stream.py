"""One stream of index batches over all iterators of a launch."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator
from typing import Any

from .epochs import Epochs

_END = object()


class IndexStream:
    """Index batches of the script's own sampler, epoch after epoch, each of them delivered once.

    Args:
        epochs: begins the sampler's epochs.
        begun: the epoch that has begun already, if any; else one begins now.
        endless: whether the next epoch follows at once; else at `resume`.

    Attributes:
        epochs: as given.
        ended: how many epochs have ended.
        first_epoch: how many batches the first one had, once it has ended.
    """

    def __init__(self, epochs: Epochs, begun: Iterator[Any] | None = None, *, endless: bool) -> None:
        self.endless = endless
        self.ended = 0
        self.first_epoch: int | None = None
        self.epochs = epochs
        self._indices = epochs.begin() if begun is None else begun
        self._ahead: deque[Any] = deque()
        self._out: dict[int | None, Any] = {}
        self._number = 0
        self._before = 0
        """Index batches that went to iterators before this one and were delivered."""
        self._over = False

    def __len__(self) -> int:
        return len(self.epochs)

    def __iter__(self) -> IndexStream:
        return self

    def __next__(self) -> Any:
        index = self._ahead.popleft() if self._ahead else next(self._indices, _END)
        if index is _END:
            index = self._next_epochs_first()
        number = self._number
        self._out[number] = index
        self._number = number + 1
        return index

    def _next_epochs_first(self) -> Any:
        self._end_epoch()
        if not self.endless:
            raise StopIteration
        self.epochs.advance()
        self.resume()
        return next(self._indices)

    def _end_epoch(self) -> None:
        if self._over:
            return
        self._over = True
        self._indices = iter(())
        self.ended += 1
        if self.first_epoch is None:
            self.first_epoch = self._before + self._number

    def delivered(self, waiting: Container[int] | None = None) -> int | None:
        """A batch has arrived; returns its samples where the index batch says so.

        Args:
            waiting: where batches arrive out of order, the numbers of those that this iterator has yet to give.
        """
        if waiting is None:
            number = next(iter(self._out), None)
        else:
            number = next((number for number in self._out if number not in waiting), None)
        index = self._out.pop(number, None)
        return len(index) if isinstance(index, (list, tuple)) else None

    def skip(self) -> bool:
        """Pass over one index batch; False where the epoch is over."""
        if next(self, _END) is _END:
            return False
        self.delivered()
        return True

    def put_back(self) -> None:
        """The iterator is shut down: what it had drawn and not delivered comes first in the next one."""
        self._ahead.extendleft(reversed(list(self._out.values())))
        self._before += self._number - len(self._out)
        self._out.clear()
        self._number = 0

    def look_ahead(self) -> None:
        """Find out whether the epoch is over, for a loop that counts its batches and never asks for one too many."""
        if self.endless or self._over or self._out or self._ahead:
            return
        index = next(self._indices, _END)
        if index is _END:
            self._end_epoch()
        else:
            self._ahead.append(index)

    @property
    def epoch_is_over(self) -> bool:
        """Whether the target has received the last batch of a natural epoch."""
        return not self.endless and self._over and not self._out and not self._ahead

    def resume(self) -> None:
        """Begin the next epoch, if one has ended."""
        if self._over:
            self._over = False
            self._indices = self.epochs.begin()
