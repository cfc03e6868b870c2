"""Host memory that the script writes again after it was copied to a device, while nothing made it wait for the copy.

With blocking copies that is safe. With non_blocking ones from pinned memory, the copy may still be reading.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import torch

from .batch import tensors_of
from .callsite import user_location
from .capture import storage_of
from .digest import sample_of
from .transfers import Transfers

WATCHED_BATCHES = 12
HELD_BATCHES = 2
"""For so long memory is kept from being freed, so that an address that comes again is the same buffer."""


class _Copied:
    """A host tensor that was copied to a device; holding it keeps its memory from becoming another's."""

    def __init__(self, source: torch.Tensor, place: int, site: dict[str, Any], waits: tuple[int, int]) -> None:
        self.site = site
        self.place = place
        self.waits = waits
        self.age = 0
        self._source = source
        self._version = _version_of(source)
        self._sample = sample_of(source)

    @property
    def rewritten(self) -> bool:
        return self._version != _version_of(self._source) or self._sample != sample_of(self._source)


class Buffers:
    """Stands where the transfer hooks find a `Capture`, for the first batches that the training loop gets.

    Args:
        transfers: the installed hooks.
    """

    def __init__(self, transfers: Transfers) -> None:
        self._transfers = transfers
        self._held: list[_Copied] = []
        self._batches: deque[set[int]] = deque(maxlen=HELD_BATCHES)
        self._kept: deque[Any] = deque(maxlen=HELD_BATCHES)
        self._arrived = 0
        self._copies = 0
        self._sites: dict[tuple[Any, ...], dict[str, Any]] = {}
        transfers.capture = self  # type: ignore[assignment]

    def arrived(self, batch: Any) -> bool:
        """The loop is about to get a batch; whether enough have come."""
        self._look()
        for copied in self._held:
            copied.age += 1
        self._held = [copied for copied in self._held if copied.age <= HELD_BATCHES]
        self._kept.append(batch)
        self._batches.append({place for tensor in tensors_of(batch) if (place := storage_of(tensor)) is not None})
        self._arrived += 1
        return self._arrived > WATCHED_BATCHES

    def note(self, source: torch.Tensor, moved: torch.Tensor, kind: str, non_blocking: bool) -> None:
        """A host tensor was copied to a device."""
        place = storage_of(source)
        if place is None or moved.is_meta:
            return
        self._look(place)
        self._copies += 1
        site = {
            "location": user_location(4),
            "kind": kind,
            "non_blocking": non_blocking,
            "pinned": self._transfers.tally.is_pinned(source),
            "of_batch": self._is_fresh_batch(place),
        }
        self._held.append(_Copied(source, place, site, self._waits()))

    def waiting(self) -> None:
        """The script is about to wait for the device: what was written until now, was written too soon."""
        self._look()

    def keep(self, tensor: torch.Tensor) -> None:
        """Asked for something else: of no interest here."""

    def close(self) -> dict[str, Any]:
        """Let go of everything; the fields of the record."""
        self._look()
        if self._transfers.capture is self:  # type: ignore[comparison-overlap]
            self._transfers.capture = None
        self._held.clear()
        self._kept.clear()
        return {"batches": self._arrived, "copies": self._copies, "rewritten": list(self._sites.values())}

    def _is_fresh_batch(self, place: int) -> bool:
        """Whether memory came with the latest batch and not with the one before, which is kept: the loader made it."""
        return len(self._batches) == HELD_BATCHES and place in self._batches[-1] and place not in self._batches[0]

    def _waits(self) -> tuple[int, int]:
        tally = self._transfers.tally
        return id(tally), tally.sync_ns

    def _look(self, place: int | None = None) -> None:
        """Find what was written since it was copied: at a place, or anywhere."""
        left = []
        for copied in self._held:
            if place in (None, copied.place) and copied.rewritten:
                waited = copied.waits != self._waits()
                key = (*copied.site.values(), waited)
                site = self._sites.setdefault(key, {**copied.site, "waited": waited, "times": 0})
                site["times"] += 1
            else:
                left.append(copied)
        self._held = left


def _version_of(tensor: torch.Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version
