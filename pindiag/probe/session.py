"""A launch as seen from inside the target: the hooks, which loader trains, and the blocks it is served in."""

from __future__ import annotations

import functools
import inspect
import os
import time
from collections import deque
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from . import batch, device, loader
from .blocks import Block
from .callsite import user_location
from .choice import Choice
from .loader import Made, Watch
from .profiler import Window
from .recorder import Recorder
from .stop import Stopper
from .transfers import Tally, Transfers

STEPLESS_BATCHES = 20
"""Batches of a known training loader after which a script that has made no step is taken to make none."""

_LONGEST_LIST = 200
"""Iterators of loaders that do not train are recorded up to this number, so that a loop of them fills no disk."""

_WATCH = "_pindiag_watch"
_MADE = "_pindiag_made"

_now = time.monotonic_ns
_thread_ns = time.thread_time_ns


class Session:
    """Everything the probe knows about its launch.

    Args:
        spec: the parent's `ProbeSpec`, as plain JSON.
        recorder: where records go.
        stopper: ends the target.
    """

    def __init__(self, spec: dict[str, Any], recorder: Recorder, stopper: Stopper) -> None:
        self._spec = spec
        self._recorder = recorder
        self._stopper = stopper
        self._pid = os.getpid()
        treatment = spec["treatment"]
        changes = treatment["changes"] if treatment else {}
        self._trial: str | None = treatment["id"] if treatment else None
        self._changes = {name: value for name, value in changes.items() if name in loader.LOADER_ARGUMENTS}
        self._wants_non_blocking = changes.get("non_blocking")
        self._refused: dict[str, str] = {}
        self._how: str | None = None
        self._transfers = Transfers(self._wants_non_blocking)
        self._choice: Choice | None = None if self._is_told() else Choice(self._choose)
        self._orders: deque[dict[str, Any]] = deque(spec["blocks"])
        self._made: list[Made] = []
        self._watches = 0
        self._chosen: Made | None = None
        self._running: Watch | None = None
        self._held: Any = None
        self._why = "named by an earlier launch of this script" if spec["loader"] else "named by --loader"
        self._facts: batch.BatchFacts | None = None
        self._block: Block | None = None
        self._window: Window | None = None
        self._stepping = False
        self._optimizer_began = 0
        self._optimizers = 0
        self._hooked_before = 0
        self._batch_waits = False
        self._last: Watch | None = None
        self._given_before = 0
        self._window_trial = ""
        self._trace = ""
        self.steps = 0

    def _is_told(self) -> bool:
        return bool(self._spec["loader"] or self._spec["loader_place"])

    # ------------------------------------------------------------------------------------------------- hooks

    def install(self) -> None:
        """Put the hooks in place; called once torch is imported and before the target makes anything."""
        self._transfers.install()
        if self._choice is not None:
            self._choice.install()
        self._wrap_loader()
        self._wrap_iterator()
        register_optimizer_step_pre_hook(self._before_optimizer)
        register_optimizer_step_post_hook(self._after_optimizer)

    def _wrap_loader(self) -> None:
        session = self
        kind: Any = DataLoader
        init, iterate = kind.__init__, kind.__iter__
        signature = inspect.signature(init)

        @functools.wraps(init)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            if os.getpid() != session._pid:
                init(self, *args, **kwargs)
                return
            location = user_location()
            ordinal = sum(made.location == location for made in session._made)
            if session._changes_at_construction(type(self), location, ordinal):
                args, kwargs, session._refused = loader.changed_arguments(signature, args, kwargs, session._changes)
                session._how = "changed at construction"
            with loader.quiet(session._changes if session._how else {}):
                init(self, *args, **kwargs)
            session._loader_made(self, location, ordinal)

        @functools.wraps(iterate)
        def __iter__(self: Any) -> Any:  # noqa: N807
            if os.getpid() != session._pid:
                return iterate(self)
            return session._iterate(self)

        self._torch_iterate = iterate
        kind.__init__, kind.__iter__ = __init__, __iter__

    def _wrap_iterator(self) -> None:
        session = self
        kind: Any = _BaseDataLoaderIter
        advance = kind.__next__

        @functools.wraps(advance)
        def __next__(self: Any) -> Any:  # noqa: N807
            watch = self.__dict__.get(_WATCH)
            if watch is None:
                return advance(self)
            follow = session._serve_next if watch is session._running else session._watch_next
            return follow(watch)

        self._torch_advance = advance
        kind.__next__ = __next__

    # ---------------------------------------------------------------------------------------------- loaders

    def _changes_at_construction(self, kind: type, location: str, ordinal: int) -> bool:
        key = self._spec["loader"]
        named = key is not None and key["location"] == location and key["ordinal"] == ordinal
        return named and bool(self._changes) and loader.has_own_iteration(kind)

    def _loader_made(self, made_loader: Any, location: str, ordinal: int) -> Made:
        made = Made(len(self._made), location, ordinal, loader.shape_of(made_loader))
        self._made.append(made)
        made_loader.__dict__[_MADE] = made
        self._recorder.write(
            "loader_made",
            loader=made.number,
            key=made.key,
            class_name=type(made_loader).__name__,
            dataset_class=type(made_loader.dataset).__name__,
            configuration=loader.configuration(made_loader, made_loader.pin_memory, None),
        )
        return made

    def _made_of(self, known_loader: Any) -> Made:
        made = known_loader.__dict__.get(_MADE)
        return made if made is not None else self._loader_made(known_loader, user_location(4), 0)

    def _trains(self, made: Made) -> bool:
        """Whether this is the training loader, or one that the script made again in its place."""
        chosen = self._chosen
        if chosen is not None:
            again = made.location == chosen.location and made.shape == chosen.shape and made.ordinal > chosen.ordinal
            return made.number == chosen.number or again
        key = self._spec["loader"]
        if key is not None:
            return bool(made.key == key)
        place = self._spec["loader_place"]
        return place is not None and is_place(made.location, place)

    def _iterate(self, asked: Any) -> Any:
        self._stopper.check()
        made = self._made_of(asked)
        if self._trains(made):
            return self._serve(asked, made)
        if self._block is not None:
            self._block.gap(_now(), over=False)
        if self._choice is None:
            return self._torch_iterate(asked)
        iterator, _ = self._watch(asked, asked, made, endless=False, fresh_stream=None)
        return iterator

    def _watch(
        self, asked: Any, served: Any, made: Made, *, endless: bool, fresh_stream: loader.IndexStream | None
    ) -> tuple[Any, Watch]:
        """Make torch's iterator of `served` and follow it."""
        began = _now()
        with loader.quiet(self._changes if asked is not served else {}):
            iterator = self._torch_iterate(served)
        stream = fresh_stream
        if stream is None and not loader.is_iterable(served):
            stream = loader.IndexStream(
                iterator._index_sampler,
                iterator=iterator._sampler_iter,
                drawn=getattr(iterator, "_send_idx", 0),
                endless=endless,
            )
            iterator._sampler_iter = stream
        watch = Watch(made, served, iterator, stream, number=self._watches, began_ns=began)
        self._watches += 1
        iterator.__dict__[_WATCH] = watch
        return iterator, watch

    def _serve(self, asked: Any, made: Made) -> Any:
        """The training loop asks for an iterator: the running one goes on, else one begins."""
        watch = self._running
        if watch is not None:
            return self._resume(watch)
        streams: list[loader.IndexStream] = []

        def stream(sampler: Any) -> Any:
            if loader.is_iterable(asked):
                return sampler
            streams.append(loader.IndexStream(sampler, endless=not self._spec["natural_epochs"]))
            return streams[0]

        changes = {} if self._how == "changed at construction" else self._changes
        twin, _, refused = loader.clone(asked, changes, stream)
        self._refused.update(refused)
        self._how = self._how or ("cloned at iteration" if changes else "nothing to change")
        fresh_stream = next(iter(streams), None)
        self._held, self._running = self._watch(asked, twin, made, endless=True, fresh_stream=fresh_stream)
        self._chosen = self._chosen or made
        self._follow(self._running)
        return self._held

    def _follow(self, watch: Watch) -> None:
        """Remember the iterator that trains, and what those before it gave."""
        if self._last is not None:
            self._given_before += self._last.delivered
        self._last = watch

    def _resume(self, watch: Watch) -> Any:
        block = self._block
        if block is not None:
            block.gap(_now(), over=False)
            if block.complete:
                self._complete_block(block)
                self._stopper.check()
        if watch.stream is not None and watch.stream.epoch_is_over:
            watch.stream.resume()
            watch.prime()
        return self._held

    # -------------------------------------------------------------------------------------------- iteration

    def _watch_next(self, watch: Watch) -> Any:
        """A batch of a loader that is not known to train."""
        self._stopper.check()
        began = _now()
        try:
            data = self._torch_advance(watch.iterator)
        except StopIteration:
            watch.open = False
            raise
        wait_ns = _now() - began
        self._delivered_by(watch)
        samples = watch.samples_of(data)
        choice = self._choice
        if choice is not None:
            watch.facts = batch.describe(data, samples)
            self._transfers.tally = Tally()
            self._batch_waits = True
            choice.yielded(watch, wait_ns)
        return data

    def _serve_next(self, watch: Watch) -> Any:
        """A batch for the training loop: the step before ends here, and so may the block."""
        entered = _now()
        self._stopper.check()
        if watch.stream is not None and watch.stream.epoch_is_over:
            self._end_epoch(entered)
            raise StopIteration
        self._optimizers = 0  # one that failed, in a script that goes on, never came to its end
        self._enter(entered)
        return self._fetch(watch, entered)

    def _fetch(self, watch: Watch, entered: int) -> Any:
        hooked = self._transfers.tally.hooked_ns
        cpu = _thread_ns()
        asked = _now()
        try:
            data = self._torch_advance(watch.iterator)
        except StopIteration:
            self._end_epoch(asked)
            if not self._restart(watch):
                raise
            return self._serve_next(watch)
        got = _now()
        cpu = _thread_ns() - cpu
        self._delivered_by(watch)
        samples = watch.samples_of(data)
        block = self._block
        if block is not None and block.step is not None:
            step = block.step
            step.wait_ns = got - asked - (self._transfers.tally.hooked_ns - hooked)
            step.wait_cpu_ns = cpu
            step.samples = samples
            # a block that opens here writes and waits before its clock starts: no cost of a counted step
            step.own_ns = (asked - step.began if step.began == entered else 0) + _now() - got
        elif not self._stepping:
            self._before_first_step(watch, data, samples)
        self._batch_waits = True
        return data

    def _before_first_step(self, watch: Watch, data: Any, samples: int) -> None:
        watch.facts = batch.describe(data, samples)
        self._transfers.tally = Tally()
        if watch.delivered > STEPLESS_BATCHES:
            self._begin_training(watch)

    def _delivered_by(self, watch: Watch) -> None:
        watch.delivered += 1
        if watch.fresh and watch.number < _LONGEST_LIST:
            self._recorder.write(
                "loader_iterated",
                loader=watch.made.number,
                iterator=watch.number,
                configuration=watch.configuration(),
                startup_ms=watch.startup_ms,
                first_batch_ms=(_now() - watch.began_ns) / 1e6,
                start_method=watch.start_method(),
                worker_pids=watch.worker_pids(),
            )
        watch.fresh = False

    def _restart(self, watch: Watch) -> bool:
        """Begin an exhausted iterable dataset again while blocks remain, in place of the target's own next epoch."""
        if watch.stream is not None or self._spec["natural_epochs"] or watch.fresh:
            watch.open = False
            if watch.stream is None or watch.loader.num_workers > 0:
                self._running = self._held = None  # torch has let go of the workers, or of the dataset's iterator
            return False
        began = _now()
        self._held = self._torch_iterate(watch.loader)
        watch.replace(self._held, began, self._watches)
        self._watches += 1
        self._held.__dict__[_WATCH] = watch
        return True

    def _end_epoch(self, now: int) -> None:
        if self._block is not None:
            self._block.gap(now, over=True)

    def _enter(self, entered: int) -> None:
        if self._window is not None and self._window.step():
            self._end_window()
        block = self._block
        if block is not None and block.enter(entered):
            self._complete_block(block)
            self._stopper.check()

    # ------------------------------------------------------------------------------------------- optimizers

    def _before_optimizer(self, *_: Any) -> None:
        self._optimizers += 1
        if self._optimizers > 1:
            return  # an optimizer inside another: the outer one's time holds it
        self._hooked_before = self._transfers.tally.hooked_ns
        self._optimizer_began = _now()

    def _after_optimizer(self, *_: Any) -> None:
        ended = _now()
        self._stopper.check()
        if os.getpid() != self._pid:
            return
        if self._batch_waits:
            self._batch_waits = False
            self.steps += 1
        self._optimizers = max(0, self._optimizers - 1)
        block = self._block
        if block is not None and block.step is not None and not self._optimizers:
            step = block.step
            step.optimized = ended
            hooked = self._transfers.tally.hooked_ns - self._hooked_before
            step.optimizer_ns += ended - self._optimizer_began - hooked
            step.own_ns += _now() - ended
        elif not self._stepping:
            self._first_step()

    def _first_step(self) -> None:
        if self._choice is not None:
            self._choice.stepped()
        elif self._running is not None and self._running.delivered:
            self._begin_training(self._running)

    # --------------------------------------------------------------------------------------------- training

    def _choose(self, watch: Watch, why: str) -> None:
        """The training loader is found in a launch that was not told: its running iterator goes on without end."""
        assert self._choice is not None
        self._choice.uninstall()
        self._choice = None
        self._why = why
        self._chosen = watch.made
        self._follow(watch)
        if watch.open and watch.iterator is not None:
            self._running, self._held = watch, watch.iterator
            if watch.stream is not None:
                watch.stream.endless = not self._spec["natural_epochs"]
        self._begin_training(watch)

    def _begin_training(self, watch: Watch) -> None:
        """The first training step is done: say what trains, and begin the first block."""
        self._stepping = True
        if self._trial is not None:
            self._say_applied(self._trial)
        self._say_chosen(watch)
        self._recorder.write("first_step")
        self._next_block()

    def _say_applied(self, trial: str) -> None:
        wanted = dict(self._changes)
        if self._wants_non_blocking is not None:
            wanted["non_blocking"] = self._wants_non_blocking
            if self._transfers.tally.non_blocking() is None:
                self._refused["non_blocking"] = "no batch moves to an accelerator by Tensor.to or Tensor.cuda"
        self._recorder.write(
            "treatment_applied",
            trial=trial,
            applied={name: value for name, value in wanted.items() if name not in self._refused},
            refused=self._refused,
            how=self._how or "nothing to change",
        )

    def _say_chosen(self, watch: Watch) -> None:
        facts = watch.facts
        assert facts is not None, "a loader is chosen after it gave a batch"
        self._recorder.write(
            "loader_chosen",
            loader=watch.made.number,
            key=watch.made.key,
            why=self._why,
            others=sorted({made.location for made in self._made} - {watch.made.location}),
            configuration=loader.configuration(
                watch.loader, watch.loader.pin_memory, self._transfers.tally.non_blocking()
            ),
            batches_per_epoch=loader.batches_per_epoch(watch.loader),
            dataset_samples=loader.dataset_samples(watch.loader),
            batch_samples=facts.samples,
            sample_bytes=round(facts.bytes / max(1, facts.samples)),
            batch_bytes=facts.bytes,
            tensors=facts.tensors,
            iterable=loader.is_iterable(watch.loader),
            dataset_class=type(watch.loader.dataset).__name__,
            start_method=watch.start_method(),
            accelerator=device.accelerator(),
            device=self._transfers.device,
            device_name=device.device_name(),
            intraop_threads=device.intraop_threads(),
        )

    def _next_block(self) -> None:
        if not self._orders:
            self._stop()
            return
        order = self._orders.popleft()
        queue = self._running.queue if self._running is not None else 0
        self._block = Block(order, queue, self._transfers, functools.partial(self._say_phase, order))

    def _say_phase(self, order: dict[str, Any], phase: str) -> None:
        self._recorder.write("block_phase", block=order["block"], trial=order["trial"], phase=phase)

    def _complete_block(self, block: Block) -> None:
        self._block = None
        self._say_phase(block.order, "counted")
        self._recorder.write("block", **block.record("counted", None))
        answer = self._recorder.ask()
        if answer["then"] == "profile":
            self._begin_window(block.order["trial"])
        elif answer["then"] == "blocks":
            self._orders.extend(answer["blocks"])
            self._next_block()
        else:
            self._stop()

    def _stop(self) -> None:
        self._running = self._held = None
        self._stopper.begin()

    # ---------------------------------------------------------------------------------------------- windows

    def _begin_window(self, trial: str) -> None:
        self._window_trial = trial
        self._trace = f"traces/{trial}-{self._spec['launch']}.json.gz"
        path = os.path.join(self._spec["run_directory"], self._trace)
        self._window = Window(path, self._spec["profile_steps"])
        self._window.start()

    def _end_window(self) -> None:
        self._say_window()
        self._stop()
        self._stopper.check()

    def _say_window(self) -> None:
        window, self._window = self._window, None
        if window is None:
            return
        window.finish()
        self._recorder.write(
            "window",
            trial=self._window_trial,
            steps=window.steps,
            trace=self._trace if window.exported else None,
            reason=window.reason,
            seconds=window.seconds,
        )

    # ------------------------------------------------------------------------------------------------- end

    def finish(self, failed: str | None) -> None:
        """The target is over: write down what was measured of an unfinished block or window.

        Args:
            failed: the exception in one line, None where the target ended by itself.
        """
        if failed is None and not self._stepping:
            self._choose_late()
        self._say_window()
        block, self._block = self._block, None
        if block is not None:
            self._finish_block(block, failed)

    def _choose_late(self) -> None:
        """The script ended before it was clear which loader trains."""
        if self._choice is not None:
            self._choice.at_end()
        elif self._last is not None and self._last.facts is not None:
            self._begin_training(self._last)
        if not self._stepping:
            self._say_no_loader()

    def _finish_block(self, block: Block, failed: str | None) -> None:
        block.gap(_now(), over=False)
        self._say_phase(block.order, "counted")
        if failed is not None:
            self._recorder.write("block", **block.record("failed", failed))
        elif block.covers_two_queues:
            self._recorder.write("block", **block.record("counted", "the script ended before the block's length"))
        else:
            self._recorder.write("block", **block.record("short", "the script ended before two queues were counted"))

    def _say_no_loader(self) -> None:
        place = self._spec["loader_place"]
        places = ", ".join(sorted({made.location for made in self._made})) or "none"
        asked = f"no DataLoader made at {place} gave a batch" if place else "no DataLoader gave a batch"
        self._recorder.write("unmeasured", key="loader", reason=f"{asked} (DataLoaders made: {places})")

    @property
    def past_natural_end(self) -> bool:
        """Whether the target was given more steps than its own epoch has."""
        return self._last is not None and self._last.past_natural_end

    @property
    def epochs(self) -> float | None:
        """Natural epochs of the training loader that the target received; None where their length is not known."""
        if self._last is None:
            return None
        length = loader.batches_per_epoch(self._last.loader)
        return (self._given_before + self._last.delivered) / length if length else None


def is_place(location: str, place: str) -> bool:
    """Whether `--loader FILE:LINE` names a location; FILE may be a name or any end of the path."""
    file, _, line = place.rpartition(":")
    location_file, _, location_line = location.rpartition(":")
    if line != location_line:
        return False
    return location_file == os.path.abspath(file) or location_file.endswith(os.sep + os.path.normpath(file))
