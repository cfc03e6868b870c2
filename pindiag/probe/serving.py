"""What the training loop is given: torch's iterators, over the script's loader or clones of it, one after another."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data.dataloader import _BaseDataLoaderIter

from . import births, device, handles, loader, objects, workers
from .epochs import Epochs
from .index_stream import IndexStream
from .main_threads import MainThreads
from .passages import LONGEST_LIST, Passages
from .recorder import Recorder
from .shutdown import shut_down
from .transfers import Transfers
from .treatment import Treatment
from .watch import Made, Watch
from .worker_birth import given_cpus

# Bound before the target runs and before the hooks are in place.
torch_advance: Callable[[Any], Any] = _BaseDataLoaderIter.__next__

WATCH = "_pindiag_watch"
"""Where an iterator of torch's keeps its watch."""

_now = time.monotonic_ns


class Serving:
    """Makes iterators, and swaps those of the training loop behind the object that it holds.

    Args:
        spec: the parent's `ProbeSpec`, as plain JSON.
        recorder: where records go.
        transfers: the hooks, whose part of a treatment is switched here.

    Attributes:
        running: the iterator that trains; None before there is one and where torch has let go of it.
        last: the latest one that trained.
        treatment: what it is served under.
        moves_batches: whether the script moves its batches to an accelerator.
        passages: through loaders that do not train.
        whole: whether epochs are served whole: by iterators that begin and end as the script's own would.
        opened: files open when the first loader that may train was iterated over; None before, and where the system
            does not tell.
    """

    def __init__(self, spec: dict[str, Any], recorder: Recorder, transfers: Transfers) -> None:
        self.running: Watch | None = None
        self.last: Watch | None = None
        self.treatment = Treatment(spec["treatment"])
        self.moves_batches = False
        self.passages = Passages(recorder, lambda: self._given)
        self.opened: handles.Positions | None = None
        self._looked_at: set[int] = set()
        self._live = spec.get("isolation") == "live"
        self.whole = any(order.get("epochs") for order in spec["blocks"])
        self._natural = bool(spec["natural_epochs"])
        self._recorder = recorder
        self._transfers = transfers
        self._held: Any = None
        self._number = 0
        self._given_before = 0
        self._watched: Any = None
        self._said: set[str | None] = set()
        self._threads = MainThreads()

    # ------------------------------------------------------------------------------- loaders that may not train

    def watch(self, asked: Any, made: Made) -> Any:
        """Torch's iterator over a loader as it is, followed."""
        self._look_for_handles(asked, made)
        began = _now()
        self._watched = asked
        try:
            iterator = loader.iterate(asked)
            self.entering(iterator, asked)
        finally:
            self._watched = None
        stream = iterator._sampler_iter if isinstance(iterator._sampler_iter, IndexStream) else None
        epochs = Epochs(asked._index_sampler, asked, begun=True) if stream is None else stream.epochs
        self._pass(Watch(made, asked, epochs, stream), iterator, began)
        return iterator

    def accompany(self, asked: Any, made: Made) -> Any:
        """Torch's iterator over a loader that is known not to train, timed."""
        began = _now()
        iterator = loader.iterate(asked)
        self._pass(Watch(made, asked, Epochs(asked._index_sampler, asked, begun=True), None), iterator, began)
        return iterator

    def _pass(self, watch: Watch, iterator: Any, began_ns: int) -> None:
        self._follow(watch, iterator, watch.asked, began_ns)
        watch.passage = self.passages.begin(watch.made.number, watch.number, began_ns)

    def entering(self, iterator: Any, asked: Any) -> None:
        """An iterator of torch's begins an epoch, and fills its queues next: the stream goes in before that.

        One that was made to tell its place may be iterated over later.
        """
        if asked is not self._watched and not loader.is_stateful(asked):
            return
        begun = iterator._sampler_iter
        if not isinstance(begun, IndexStream) and not loader.is_iterable(asked):
            epochs = Epochs(asked._index_sampler, asked, begun=True)
            iterator._sampler_iter = IndexStream(epochs, begun, endless=False)

    def _follow(self, watch: Watch, iterator: Any, served: Any, began_ns: int) -> None:
        watch.follow(iterator, served, self._number, began_ns)
        self._number += 1
        iterator.__dict__[WATCH] = watch

    def adopt(self, watch: Watch) -> None:
        """This iterator trains: it goes on without end."""
        self.passages.forget(watch.number)
        self._train(watch)
        if watch.open and watch.iterator is not None:
            self.running, self._held = watch, watch.iterator
            if watch.stream is not None:
                watch.stream.endless = not self._natural

    # ------------------------------------------------------------------------------------------- the training loop

    def serve(self, asked: Any, made: Made) -> Any:
        """The training loop asks for its first iterator, or for another one after torch let go of the last."""
        self._look_for_handles(asked, made)
        if self.whole:
            return self._serve_whole(asked, made)
        twin = self._clone(asked)
        epochs = Epochs(twin._index_sampler, asked)
        if loader.is_iterable(asked):
            epochs.begin()
            stream = None
        else:
            stream = IndexStream(epochs, endless=not self._natural)
        watch = Watch(made, asked, epochs, stream)
        watch.served = twin
        with loader.quiet(self.treatment.loader):
            self._iterate(watch)
        self._train(watch)
        self.running = watch
        return self._held

    def _look_for_handles(self, asked: Any, made: Made) -> None:
        """Before anything was fetched: what is open now is what workers of a fresh process would inherit."""
        if made.number in self._looked_at:
            return
        self._looked_at.add(made.number)
        found = handles.handles_of(dataset=asked.dataset, collate_fn=asked.collate_fn)
        if self.opened is None:
            self.opened = handles.positions()
        self._recorder.write(
            "handles_open",
            loader=made.number,
            handles=[handle._asdict() for handle in found],
            objects=[held._asdict() for held in objects.objects_of(dataset=asked.dataset)],
            collate_place=objects.place_of(asked.collate_fn),
        )

    def _serve_whole(self, asked: Any, made: Made) -> Any:
        """Torch's own iterator over the same clone every time, so that persistent workers persist."""
        again = self.last is not None and self.last.asked is asked
        twin = self.last.served if again and self.last is not None else self._clone(asked)
        watch = Watch(made, asked, Epochs(twin._index_sampler, asked, begun=True), None)
        began = _now()
        with loader.quiet(self.treatment.loader):
            iterator = loader.iterate(twin)
        if loader.is_stateful(twin):
            asked._iterator = iterator
        self._follow(watch, iterator, twin, began)
        self._train(watch)
        self.running = watch
        return iterator

    @property
    def held(self) -> Any:
        """The running iterator, for a loop that asks again."""
        return self._held

    def _train(self, watch: Watch) -> None:
        if self.last is not None:
            self._given_before += self.last.delivered
        self.last = watch

    def _clone(self, asked: Any) -> Any:
        treatment = self.treatment
        changes = {} if treatment.how == "changed at construction" else treatment.loader
        twin, refused = loader.clone(asked, changes)
        treatment.refused.update(refused)
        treatment.how = treatment.how or ("cloned at iteration" if changes else "nothing to change")
        return twin

    def _iterate(self, watch: Watch) -> None:
        twin = watch.served
        loader.feed(twin, watch.stream, watch.epochs.seeds)
        began = _now()
        iterator = loader.iterate(twin)
        if loader.is_stateful(twin):
            watch.asked._iterator = iterator
        self._follow(watch, iterator, twin, began)
        self._held = iterator

    def restart(self, watch: Watch, *, anyway: bool = False) -> bool:
        """Begin an exhausted iterable dataset again while blocks remain, in place of the target's own next epoch.

        Args:
            watch: the iterator that is exhausted.
            anyway: also where epochs end as the script's own do.
        """
        if watch.stream is not None or watch.fresh or self.whole or (self._natural and not anyway):
            watch.open = False
            if watch.stream is None or watch.served.num_workers > 0:
                self.release()  # torch has let go of the workers, or of the dataset's iterator
            return False
        watch.epochs.begin()
        watch.restarts += 1
        self.start(watch)
        return True

    def release(self) -> None:
        """Keep the iterator that trains no longer."""
        self.running = self._held = None

    # ---------------------------------------------------------------------------------------------------- switching

    def leave(self, watch: Watch) -> None:
        """Shut the running iterator down; what it had not delivered comes first in the next one."""
        shut_down(watch.iterator)
        if watch.stream is not None:
            watch.stream.put_back()
        device.empty_host_cache()

    def change(self, treatment: Treatment) -> None:
        """From now on serve under this treatment; the iterator that does so is made by `start`."""
        self.treatment = treatment
        self.apply()
        watch = self.running
        if "batch_size" in treatment.loader:
            del treatment.loader["batch_size"]
            treatment.refused["batch_size"] = "the batches of a running epoch are made already"
        if watch is not None:
            watch.served = self._clone(watch.asked)
        self.say_applied()

    def apply(self) -> None:
        """Switch the parts of the treatment that are not the loader's."""
        self._transfers.force = self.treatment.non_blocking
        workers.birth.threads = self.treatment.worker_threads
        workers.birth.cpus = given_cpus() if self.treatment.worker_affinity else None
        self._threads.give(self.treatment.fewer_threads)

    def start(self, watch: Watch) -> None:
        """Make an iterator that the script did not ask for."""
        with loader.silenced():
            self._iterate(watch)

    def refuse(self, change: str, reason: str) -> None:
        """A treatment turns out to be impossible."""
        self.treatment.refused[change] = reason
        self._said.discard(self.treatment.id)
        self.say_applied()

    def say_applied(self) -> None:
        """Write down what the treatment changes and what it cannot, once a launch."""
        treatment = self.treatment
        if treatment.id is None or treatment.id in self._said:
            return
        self._said.add(treatment.id)
        if treatment.non_blocking is not None and not self.moves_batches:
            treatment.refused["non_blocking"] = "no batch moves to an accelerator by Tensor.to or Tensor.cuda"
        self._recorder.write(
            "treatment_applied",
            trial=treatment.id,
            applied=treatment.applied,
            refused=treatment.refused,
            how=treatment.how or "nothing to change",
        )

    # ------------------------------------------------------------------------------------------------------ batches

    def take(self, watch: Watch) -> Any:
        """A batch that the script does not see; where an epoch ends, the next one begins."""
        stream = watch.stream
        if stream is not None and stream.epoch_is_over:
            stream.resume()
            watch.prime()
        try:
            data = torch_advance(watch.iterator)
        except StopIteration:
            if stream is not None:
                stream.resume()
            elif not self.restart(watch, anyway=True):
                raise
            data = torch_advance(watch.iterator)
        if watch.fresh:
            self.first_batch(watch, data)
        return data

    def first_batch(self, watch: Watch, data: Any) -> None:
        """An iterator of torch's has given its first batch."""
        watch.fresh = False
        watch.arrived_ns = _now()
        trains = watch is self.running
        if trains and self.treatment.intraop_threads is not None:
            # not before: a pin thread that starts stores 1 for the whole process
            torch.set_num_threads(self.treatment.intraop_threads)
        if trains and self.treatment.fewer_threads is not None:
            # once more: the script may have set a number of its own before
            self._threads.give(self.treatment.fewer_threads)
        if watch.number >= LONGEST_LIST and not trains:
            return
        self._recorder.write(
            "loader_iterated",
            loader=watch.made.number,
            iterator=watch.number,
            configuration=watch.configuration(),
            startup_ms=watch.startup_ms,
            first_batch_ms=(_now() - watch.began_ns) / 1e6,
            start_method=watch.start_method(),
            worker_pids=watch.worker_pids(),
            trial=self.treatment.id if trains and self._live else None,
            **births.figures(watch.iterator, data),
        )

    def epochs(self) -> float | None:
        """Natural epochs of the training loader that the target received; None where their length is not known."""
        if self.last is None:
            return None
        length = loader.batches_per_epoch(self.last.served)
        return self._given / length if length else None

    @property
    def _given(self) -> int:
        """Batches of the training loader that the target received."""
        return self._given_before + (0 if self.last is None else self.last.delivered)
