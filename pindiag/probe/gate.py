"""The safety gate: the same index batches fetched by the script's own loader and by it under other arguments.

It runs at the end of a launch, when nothing is measured any more and the target is about to be stopped.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any

import torch

from . import handles, loader
from .batch import tensors_of
from .digest import Digest, digest_of
from .recorder import Recorder
from .serving import Serving, torch_advance
from .shutdown import shut_down
from .treatment import Treatment
from .watch import Watch

BATCHES = 8
"""Index batches that are compared."""

LONGEST_S = 10.0
"""After so long a passage ends with the batches that it has."""

AS_WRITTEN = "baseline"
"""What a passage under the script's own arguments calls its trial, as the first block of a run does."""

_Turn = tuple[str, dict[str, Any]]
"""Name of a trial, and the arguments of DataLoader that it changes."""

_now = time.monotonic


class Gate:
    """Compares batches.

    Args:
        recorder: where records go.
        serving: what the training loop is given.
    """

    def __init__(self, recorder: Recorder, serving: Serving) -> None:
        self._recorder = recorder
        self._serving = serving
        self._passages = 0

    def run(self, watch: Watch | None, treatments: Sequence[dict[str, Any]]) -> None:
        """Fetch the same batches as written and under each treatment; again as written where not all are equal.

        The second time they are asked for in reverse order and with another seed, so that batches that depend on
        anything but their indices differ. Passages with workers come first: a dataset that served in this process may
        have opened files that workers would inherit.
        """
        if watch is None:
            self._say(AS_WRITTEN, reason="the training loop had let go of its loader")
            return
        if self._serving.treatment.how == "changed at construction":
            self._say(AS_WRITTEN, reason="the loader's arguments were changed where the script makes it")
            return
        asked = watch.asked
        try:
            indices = None if loader.is_iterable(asked) else list(islice(iter(asked._index_sampler), BATCHES))
        except Exception as error:
            self._say(AS_WRITTEN, reason=f"its sampler gave no indices: {_in_words(error)}")
            return
        written: _Turn = (AS_WRITTEN, {})
        turns = [written, *((made["id"], Treatment(made).loader) for made in treatments)]
        in_workers = [turn for turn in turns if _workers(asked, turn[1]) > 0]
        in_main = [turn for turn in turns if turn not in in_workers]
        seen = {self._pass(asked, turn, indices) for turn in in_workers}
        if written in in_workers and (in_main or len(seen) > 1):
            self._pass(asked, written, indices, backwards=True)
        seen |= {self._pass(asked, turn, indices) for turn in in_main}
        if written in in_main and len(seen) > 1:
            self._pass(asked, written, indices, backwards=True)

    def _pass(
        self, asked: Any, turn: _Turn, indices: list[Any] | None, *, backwards: bool = False
    ) -> tuple[str, ...] | None:
        """Fetch the batches once; what they were, None where the loader could not be changed."""
        trial, changes = turn
        twin, refused = loader.clone(asked, changes)
        if refused:
            self._say(trial, reason=next(iter(refused.values())))
            return None
        self._passages += 1
        numbers = list(range(max(BATCHES, twin.num_workers) if indices is None else len(indices)))
        if backwards and indices is not None:
            numbers.reverse()
        seeds = torch.Generator()
        seeds.manual_seed(self._passages)
        twin.__dict__["in_order"] = True
        loader.feed(twin, None if indices is None else [indices[number] for number in numbers], seeds)
        sharing = handles.Sharing(self._serving.opened if twin.num_workers > 0 else None)
        passage = _Passage(numbers, self._serving.moves_batches, sharing)
        passage.run(twin)
        self._say(
            trial,
            workers=twin.num_workers,
            start_method=start_method(twin),
            iterable=indices is None,
            backwards=backwards,
            batches=passage.batches,
            changed_later=passage.changed_later,
            pinned=passage.pinned,
            shared_files=sharing.files,
            raised=passage.raised,
        )
        return tuple(batch["content"] for batch in passage.batches)

    def _say(self, trial: str, **fields: Any) -> None:
        self._recorder.write("gate_pass", trial=trial, **fields)


class _Passage:
    """One iterator over the index batches.

    Args:
        numbers: of the batches that it gives.
        moves: whether the script moves its batches to an accelerator.
        sharing: looks at files after each batch.
    """

    def __init__(self, numbers: Sequence[int], moves: bool, sharing: handles.Sharing) -> None:
        self.batches: list[dict[str, Any]] = []
        self.changed_later = 0
        self.pinned = False
        self.raised: str | None = None
        self._numbers = numbers
        self._moves = moves
        self._sharing = sharing
        self._last: tuple[Any, Digest] | None = None

    def run(self, twin: Any) -> None:
        """Fetch them; an exception ends it."""
        iterator = None
        try:
            with loader.silenced():
                iterator = loader.iterate(twin)
            self._fetch(iterator)
        except StopIteration:
            pass
        except Exception as error:
            self.raised = _in_words(error)
        finally:
            self._last = None
            if iterator is not None:
                shut_down(iterator)

    def _fetch(self, iterator: Any) -> None:
        until = _now() + LONGEST_S
        for number in self._numbers:
            data = torch_advance(iterator)
            self._sharing.look()
            if self._last is not None:
                batch, was = self._last
                self.changed_later += digest_of(batch).content != was.content
            digest = digest_of(data)
            self._last = data, digest
            if self._moves:  # else asking might wake an accelerator that the script does not use
                self.pinned = self.pinned or any(tensor.is_pinned() for tensor in tensors_of(data) if tensor.is_cpu)
            self.batches.append({"batch": number, **digest._asdict()})
            if _now() > until:
                return


def start_method(loaded: Any) -> str | None:
    """How workers of a loader start; asked without settling it for the target."""
    context = loaded.multiprocessing_context
    if context is not None:
        return str(context.get_start_method())
    return multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]


def _workers(asked: Any, changes: dict[str, Any]) -> int:
    return int(changes.get("num_workers", asked.num_workers))


def _in_words(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[-1]}"
