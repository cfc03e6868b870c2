"""Whether the dataset is still what it was when a block began, where it serves in the training process."""

from __future__ import annotations

from typing import Any

from . import dataset_state
from .recorder import Recorder
from .serving import Serving


class DatasetWatch:
    """Compares the dataset before and after each block of a live launch.

    Args:
        recorder: where a change is written down.
        serving: what the training loop is given.
        live: without it nothing is looked at: a fresh process starts from the dataset as the script makes it.
    """

    def __init__(self, recorder: Recorder, serving: Serving, *, live: bool) -> None:
        self._recorder = recorder
        self._serving = serving
        self._live = live
        self._before: dataset_state.State | None = None

    def begin(self) -> None:
        """A block begins."""
        self._before = self._now()

    def end(self, order: dict[str, Any]) -> None:
        """The block of this order is over."""
        before, self._before = self._before, None
        after = self._now() if before is not None else None
        what = dataset_state.first_difference(before, after) if before is not None and after is not None else None
        if what is not None:
            self._recorder.write("dataset_changed", trial=order["trial"], block=order["block"], what=what)

    def _now(self) -> dataset_state.State | None:
        running = self._serving.running
        if not self._live or running is None or running.served.num_workers > 0:
            return None
        return dataset_state.read(running.served.dataset)
