"""Batches replayed to the training loop in place of the loader's: how fast it would be if the stages before were free.

In the order of use: a `Replay` is made; real batches pass through `collect` on their way to the script until it is
`full`; `begin` makes them ready; `serve` gives one for each step; `close` frees them.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Literal, NamedTuple

import torch

from . import device
from .capture import Capture, storage_of
from .template import Path, Template
from .transfers import Transfers

REPLAYED = 8
"""Batches that take turns: one alone would stay in the caches."""

WATCHED = 64
"""Batches after which nobody waits any longer for one to be moved: some loops fetch many before they use the first."""

_UNDER_WAY = 2
"""Batches back from the newest that a loop may still be working on: some fetch one ahead."""

Kind = Literal["device", "pinned", "pageable"]
"""Where replayed batches lie: `compute_only` is "device", `host_batch` with and without `pin_memory` the others."""

CHANGED_IN_PLACE = (
    "each replayed batch was copied for its step, because the script changes batches in place: the copy is part of the "
    "step's time"
)
NOTHING_MOVED = (
    "no tensor of a batch was seen going to an accelerator by Tensor.to, Tensor.cuda or Tensor.copy_, so that batches "
    "were replayed from host memory and whatever moves them still counts"
)
NOTHING_TO_PIN_FOR = "the script uses no accelerator, for which alone memory is pinned"

_now = time.monotonic_ns
# Bound before the transfer hooks are in place, and before the target may replace it: what is moved here is no transfer
# of the script's.
_to = torch.Tensor.to
_pin = torch.Tensor.pin_memory


class Served(NamedTuple):
    """A replayed batch."""

    data: Any
    samples: int
    own_ns: int
    """Time it took; all of it the probe's own."""


class _Entry:
    """One of the batches in turn."""

    def __init__(self, data: Any, samples: int) -> None:
        self.template = Template(data)
        self.samples = samples
        self.versions = self._versions()

    def _versions(self) -> list[int]:
        return [tensor._version for tensor in self.template.tensors]

    def is_changed(self) -> bool:
        return self.versions != self._versions()


class Replay:
    """Real batches, copied, to be served again and again.

    Args:
        transfers: the installed hooks; their capture is on until `begin`.
        kind: where the replayed batches lie.

    Attributes:
        notes: sentences for the block's record.
    """

    def __init__(self, transfers: Transfers, kind: Kind) -> None:
        self.notes: list[str] = []
        self._transfers = transfers
        self._kind: Kind = kind
        self._capture = transfers.capture = Capture()
        self._moved: dict[Path, torch.device] = {}
        self._on_host: set[Path] = set()
        self._under_way: deque[Template] = deque(maxlen=_UNDER_WAY)
        self._entries: list[_Entry] = []
        self._reason: str | None = None
        self._seen = 0
        self._served = 0
        self._last: deque[_Entry] = deque(maxlen=_UNDER_WAY)
        self._copying = False

    @property
    def full(self) -> bool:
        """Whether enough is known: batches, and where they go (or one cannot be copied: `begin` says why)."""
        if self._reason is not None:
            return True
        goes_somewhere = self._kind == "device" and self._uses_accelerator()
        return self._seen >= (REPLAYED if self._moved or not goes_somewhere else WATCHED)

    def collect(self, data: Any, samples: int) -> None:
        """Take a copy of a batch that the script is about to get; beyond the first eight, only watch where it goes.

        Takes as long as copying the batch: for settle steps only.
        """
        self._note_transfers()
        if self._reason is not None:
            return
        self._seen += 1
        try:
            original = Template(data)
            if self._seen <= REPLAYED:
                self._entries.append(_Entry(_copied(original), samples))
        except Exception as error:
            self._give_up(f"a batch ({type(data).__name__}) cannot be copied: {_first_line(error)}")
            return
        self._under_way.append(original)

    def begin(self) -> str | None:
        """Make the collected batches ready. Call it between two steps.

        Returns:
            None, or the reason why they cannot be replayed; everything is freed then.
        """
        self._note_transfers()
        self._stop_watching()
        if self._reason is None and not self._entries:
            self._reason = "no batch was collected"
        if self._reason is None and self._kind == "pinned" and not self._uses_accelerator():
            self._reason = NOTHING_TO_PIN_FOR
        if self._reason is None:
            self._settle_down()
        if self._reason is not None:
            self.close()
        return self._reason

    def serve(self) -> Served:
        """The next batch, its tensors and containers fresh; only the tensors' memory is shared with its last turn."""
        began = _now()
        if not self._copying:
            self._watch_changes()
        entry = self._entries[self._served % len(self._entries)]
        self._served += 1
        self._last.append(entry)
        make = _copy_of if self._copying else _view_of
        data = entry.template.build([make(tensor) for tensor in entry.template.tensors])
        return Served(data, entry.samples, _now() - began)

    def close(self) -> None:
        """Free the batches; what the script has kept of them stays its own."""
        self._stop_watching()
        self._entries.clear()
        self._last.clear()

    def _note_transfers(self) -> None:
        """Read what the hooks saw, while the batches are held: freed memory may soon be another tensor's."""
        capture = self._capture
        for template in self._under_way:
            for path, tensor in zip(template.paths, template.tensors, strict=True):
                place = storage_of(tensor)
                if place in capture.devices:
                    self._moved.setdefault(path, capture.devices[place])
                if place in capture.on_host:
                    self._on_host.add(path)
        capture.devices.clear()
        capture.on_host.clear()

    def _stop_watching(self) -> None:
        if self._transfers.capture is self._capture:
            self._transfers.capture = None
        self._under_way.clear()

    def _give_up(self, reason: str) -> None:
        self._reason = reason
        self.close()

    def _uses_accelerator(self) -> bool:
        return self._transfers.device is not None or device.cuda_in_use()

    def _settle_down(self) -> None:
        """Bring the copies to where they are replayed from."""
        if self._kind == "pageable":
            return
        try:
            # one after the other, so that no batch is held twice
            for place, entry in enumerate(self._entries):
                template = entry.template
                tensors = [self._placed(*pair) for pair in zip(template.paths, template.tensors, strict=True)]
                self._entries[place] = _Entry(template.build(tensors), entry.samples)
        except Exception as error:
            self._reason = f"the batches cannot be held in {self._kind} memory: {_first_line(error)}"
        if self._kind == "device" and not self._moved and self._uses_accelerator():
            self.notes.append(NOTHING_MOVED)

    def _placed(self, path: Path, tensor: torch.Tensor) -> torch.Tensor:
        if self._kind == "pinned":
            return _like(tensor, _pin(tensor.detach())) if tensor.is_cpu else tensor
        target = None if path in self._on_host else self._moved.get(path)
        return tensor if target is None else _like(tensor, _to(tensor.detach(), target))

    def _watch_changes(self) -> None:
        """Once a step has changed a batch in place, that batch is done with and the others are served as copies."""
        upcoming = self._entries[self._served % len(self._entries)]
        if not upcoming.is_changed() and not any(entry.is_changed() for entry in self._last):
            return
        self._copying = True
        self.notes.append(CHANGED_IN_PLACE)
        # those served last may be changed yet
        untouched = [entry for entry in self._entries if entry not in self._last and not entry.is_changed()]
        self._entries = untouched or self._entries


def _copied(template: Template) -> Any:
    """The batch with copies of its tensors in ordinary memory.

    Raises:
        TypeError: the batch's class does not take them.
    """
    with torch.inference_mode(False), torch.no_grad():
        copies = [_like(tensor, tensor.detach().clone()) for tensor in template.tensors]
    data = template.build(copies)
    found = Template(data).tensors
    if len(found) != len(copies) or any(one is not other for one, other in zip(found, copies, strict=True)):
        raise TypeError("it does not hold the tensors that it is given")
    return data


def _view_of(tensor: torch.Tensor) -> torch.Tensor:
    # shares memory and version counter; what the script hangs on it, resizes or marks is its own
    return _like(tensor, tensor.detach())


def _copy_of(tensor: torch.Tensor) -> torch.Tensor:
    fresh = tensor.detach().clone()
    if tensor.is_cpu and tensor.is_pinned():
        fresh = _pin(fresh)
    return _like(tensor, fresh)


def _like(tensor: torch.Tensor, fresh: torch.Tensor) -> torch.Tensor:
    """Give a fresh tensor what another one carries beside its numbers."""
    for name, value in tensor.__dict__.items():
        fresh.__dict__.setdefault(name, value)  # a subclass may have given it its own
    if tensor.requires_grad:
        fresh.requires_grad_()
    return fresh


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
