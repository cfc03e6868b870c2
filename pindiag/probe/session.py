"""A launch as seen from inside the target: which loader trains, and the steps it is served for."""

from __future__ import annotations

import errno
import os
import sys
import time
import traceback
from collections.abc import Callable
from inspect import Signature
from typing import Any

from torch.utils import data
from torch.utils.data.dataloader import _BaseDataLoaderIter

from . import batch, device, hooks, loader, loop, target
from .callsite import user_stack
from .choice import Choice
from .loaders import Loaders
from .recorder import Recorder
from .serving import Serving, torch_advance
from .stop import Stopper
from .tally import Tally
from .training import Training
from .transfers import Transfers
from .turns import turns
from .watch import Watch

STEPLESS_BATCHES = 20
"""Batches of a known training loader after which a script that has made no step is taken to make none."""

_OUT_OF_FILES = (os.strerror(errno.EMFILE), "received 0 items of ancdata")
_LOADER_FOLDER = os.path.dirname(os.path.abspath(data.__file__)) + os.sep

_now = time.monotonic_ns


class Session:
    """Everything the probe knows about its launch.

    Args:
        spec: the parent's `ProbeSpec`, as plain JSON.
        recorder: where records go.
        stopper: ends the target.

    Attributes:
        serving: what the training loop is given.
        steps: training steps done so far.
    """

    def __init__(self, spec: dict[str, Any], recorder: Recorder, stopper: Stopper) -> None:
        self.steps = 0
        self._spec = spec
        self._recorder = recorder
        self._stopper = stopper
        self._forked = False
        self._transfers = Transfers(None)
        self._loaders = Loaders(spec, recorder)
        self.serving = Serving(spec, recorder, self._transfers)
        self._training = Training(spec, recorder, stopper, self._transfers, self.serving)
        self._choice: Choice | None = None if self._loaders.is_told else Choice(self._choose)
        self._why = "named by an earlier launch of this script" if spec["loader"] else "named by --loader"
        self._stepping = False
        self._optimizer_began = 0
        self._optimizers = 0
        self._hooked_before = 0
        self._batch_waits = False

    def install(self) -> None:
        """Put the hooks in place; called once torch is imported and before the target makes anything."""
        self._transfers.install()
        turns.install()
        self.serving.apply()
        if self._choice is not None:
            self._choice.install()
        hooks.install(self)
        os.register_at_fork(after_in_child=self._leave)

    def _leave(self) -> None:
        """This is a child of the target: its steps are its own affair."""
        self._forked = True

    # ---------------------------------------------------------------------------------------------- loaders

    def construct(
        self, new: Any, init: Callable[..., None], signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """The target makes a DataLoader."""
        dataset = kwargs.get("dataset", args[0] if args else None)
        origin = self._loaders.origin_of(new, dataset)
        ordinal = self._loaders.ordinal_at(origin.location)
        named = self._loaders.is_named(origin.location, ordinal)
        treatment = self.serving.treatment
        changes = treatment.loader
        here = bool(changes) and named and loader.has_own_iteration(type(new))
        if here:
            args, kwargs, treatment.refused = loader.changed_arguments(signature, args, kwargs, changes)
            treatment.how = "changed at construction"
        with loader.quiet(changes if here else {}):
            init(new, *args, **kwargs)
        self._loaders.made(new, origin, ordinal, user_stack())

    def iterate(self, asked: Any) -> Any:
        """The target asks a loader for an iterator."""
        self._stopper.check()
        made = self._loaders.made_of(asked)
        if self._loaders.trains(made):
            if self.serving.running is not None and self.serving.whole:
                self._training.gap(_now(), over=False)
                self._training.end_epoch(over=False)
            elif self.serving.running is not None:
                return self._training.resume(self.serving.running)
            self._loaders.chosen = self._loaders.chosen or made
            return self.serving.serve(asked, made)
        self._training.gap(_now(), over=False)
        return self.serving.accompany(asked, made) if self._choice is None else self.serving.watch(asked, made)

    # -------------------------------------------------------------------------------------------- iteration

    def watch_next(self, watch: Watch) -> Any:
        """A batch of a loader that is not known to train."""
        self._stopper.check()
        began = _now()
        try:
            data = torch_advance(watch.iterator)
        except StopIteration:
            watch.open = False
            self.serving.passages.exhausted(watch.number)
            raise
        except Exception:
            watch.arrived()
            raise
        wait_ns = _now() - began
        watch.waited(wait_ns)
        if watch.fresh:
            self.serving.first_batch(watch, data)
        samples = watch.samples_of(data)
        choice = self._choice
        if choice is not None:
            self._look_at(watch, data, samples)
            self._batch_waits = True
            choice.yielded(watch, wait_ns)
        return data

    def serve_quickly(self, watch: Watch) -> Any:
        """The same as `serve_next` in a step that was granted: little code, since the script's step has cooled it."""
        entered = _now()
        watch.granted -= 1
        self._transfers.counts = False
        tally = self._transfers.tally
        hooked = tally.hooked_ns
        try:
            data = torch_advance(watch.iterator)  # not the one that the script holds: a treatment has its own
        except Exception:
            return self._serve_failed(watch, entered)
        got = _now()
        watch.delivered += 1
        self._batch_waits = True
        wait_ns = got - entered - (tally.hooked_ns - hooked)
        block = self._training.block
        assert block is not None, "steps are granted by a block"
        step = block.next_step(entered, wait_ns, watch.samples_of(data))
        step.own_ns = _now() - got
        return data

    def _serve_failed(self, watch: Watch, entered: int) -> Any:
        """Called where what torch's iterator raised is handled."""
        watch.granted = 0
        self._transfers.counts = True
        self._training.enter(entered)
        if not isinstance(sys.exc_info()[1], StopIteration):
            watch.arrived()
            raise  # noqa: PLE0704 - what is being handled
        data, _ = self._training.exhausted(watch, entered)
        self._batch_waits = True
        return data

    def serve_next(self, watch: Watch) -> Any:
        """A batch for the training loop: the step before ends here, and so may the block."""
        entered = _now()
        self._transfers.counts = True
        self._stopper.check()
        if watch.stream is not None and watch.stream.epoch_is_over:
            self._training.gap(entered, over=True)
            raise StopIteration
        self._optimizers = 0  # one that failed, in a script that goes on, never came to its end
        self._training.enter(entered)
        data, samples = self._training.fetch(watch, entered)
        if not self._stepping:
            self._before_first_step(watch, data, samples)
        self._batch_waits = True
        self._training.grant(watch)
        return data

    def _before_first_step(self, watch: Watch, data: Any, samples: int) -> None:
        self._look_at(watch, data, samples)
        if watch.delivered > STEPLESS_BATCHES:
            self._begin_training(watch)

    def _look_at(self, watch: Watch, data: Any, samples: int) -> None:
        """A batch before the first training step."""
        watch.facts = batch.describe(data, samples)
        watch.looped = watch.looped or user_stack()
        self._transfers.tally = Tally()

    # ------------------------------------------------------------------------------------------- optimizers

    def before_optimizer(self, *_: Any) -> None:
        """An optimizer is about to step."""
        if not self._transfers.counts:
            return
        self._optimizers += 1
        if self._optimizers > 1:
            return  # an optimizer inside another: the outer one's time holds it
        self._hooked_before = self._transfers.tally.hooked_ns
        self._optimizer_began = _now()

    def after_optimizer(self, *_: Any) -> None:
        """An optimizer has stepped."""
        ended = _now()
        if self._stopper.stopping:
            self._stopper.check()
        if self._forked:
            return
        if self._batch_waits:
            self._batch_waits = False
            self.steps += 1
        self._optimizers = max(0, self._optimizers - 1)
        block = self._training.block
        if block is not None and block.step is not None and not self._optimizers:
            step = block.step
            step.optimized = ended
            if not self._transfers.counts:
                return
            hooked = self._transfers.tally.hooked_ns - self._hooked_before
            step.optimizer_ns += ended - self._optimizer_began - hooked
            step.own_ns += _now() - ended
        elif not self._stepping:
            self._first_step()

    def _first_step(self) -> None:
        running = self.serving.running
        if self._choice is not None:
            self._choice.stepped()
        elif running is not None and running.delivered:
            self._begin_training(running)

    # --------------------------------------------------------------------------------------------- training

    def _choose(self, watch: Watch, why: str) -> None:
        """The training loader is found in a launch that was not told."""
        assert self._choice is not None
        self._choice.uninstall()
        self._choice = None
        self._why = why
        self._loaders.chosen = watch.made
        self.serving.adopt(watch)
        self._begin_training(watch)

    def _begin_training(self, watch: Watch) -> None:
        """The first training step is done: say what trains, and begin the first block."""
        self._stepping = True
        non_blocking = self._transfers.tally.non_blocking()
        self.serving.moves_batches = non_blocking is not None
        self.serving.say_applied()
        self._say_chosen(watch, non_blocking)
        self._say_loop(watch)
        self._recorder.write("first_step")
        self._training.begin()

    def _say_chosen(self, watch: Watch, non_blocking: bool | str | None) -> None:
        facts, served = watch.facts, watch.served
        assert facts is not None, "a loader is chosen after it gave a batch"
        self._recorder.write(
            "loader_chosen",
            loader=watch.made.number,
            key=watch.made.key,
            why=self._why,
            others=[place for place in self._loaders.locations if place != watch.made.location],
            configuration=loader.configuration(served, served.pin_memory, non_blocking),
            batches_per_epoch=loader.batches_per_epoch(served),
            dataset_samples=loader.dataset_samples(served),
            batch_samples=facts.samples,
            sample_bytes=round(facts.bytes / max(1, facts.samples)),
            batch_bytes=facts.bytes,
            tensors=facts.tensors,
            iterable=loader.is_iterable(served),
            dataset_class=type(served.dataset).__name__,
            start_method=watch.start_method(),
            accelerator=device.accelerator(),
            device=self._transfers.device,
            device_name=device.device_name(),
            intraop_threads=device.intraop_threads(),
            fetches_batches=loader.fetches_batches(served),
        )

    def _say_loop(self, watch: Watch) -> None:
        """How the training loop is written: the same in later launches."""
        found = None if self._spec["loader"] else loop.describe(watch.made.stack, watch.looped)
        if found is not None:
            self._recorder.write("training_loop", **found)

    # ------------------------------------------------------------------------------------------------- end

    def finish(self, failed: str | None) -> None:
        """The target is over: write down what was measured of an unfinished block or window.

        Args:
            failed: the exception in one line, None where the target ended by itself.
        """
        if failed is None and not self._stepping:
            self._choose_late()
        self._training.finish(failed)

    def _choose_late(self) -> None:
        """The script ended before it was clear which loader trains."""
        last = self.serving.last
        if self._choice is not None:
            self._choice.at_end()
        elif last is not None and last.facts is not None:
            self._begin_training(last)
        if not self._stepping:
            self._say_no_loader()

    def _say_no_loader(self) -> None:
        place = self._spec["loader_place"]
        places = ", ".join(self._loaders.locations) or "none"
        asked = f"no DataLoader made at {place} gave a batch" if place else "no DataLoader gave a batch"
        self._recorder.write("unmeasured", key="loader", reason=f"{asked} (DataLoaders made: {places})")

    def is_past_natural_end(self, error: BaseException) -> bool:
        """Whether the target may have failed because it was given more steps than its own epoch has."""
        last = self.serving.last
        own = ran_out_of_files(error) or not raised_by_loader(error)
        return last is not None and last.past_natural_end and own

    @property
    def epochs(self) -> float | None:
        """Natural epochs of the training loader that the target received; None where their length is not known."""
        return self.serving.epochs()


def ran_out_of_files(error: BaseException) -> bool:
    """Whether the process has no descriptor left: it may keep what it lets go at the end of its own epoch."""
    return any(words in str(one) for one in target.chain(error) for words in _OUT_OF_FILES)


def raised_by_loader(error: BaseException) -> bool:
    """Whether an exception, or one that it came from, passed through an iterator of torch's or its signal handler."""
    entries = (entry for one in target.chain(error) for entry, _ in traceback.walk_tb(one.__traceback__))
    return any(
        entry.f_code.co_filename.startswith(_LOADER_FOLDER)
        or isinstance(entry.f_locals.get("self"), _BaseDataLoaderIter)
        for entry in entries
    )
