"""The blocks and profiler windows of a launch, one after another, once it is known which loader trains."""

from __future__ import annotations

import functools
import random
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from . import contexts
from .blocks import Block
from .buffers import Buffers
from .dataset_watch import DatasetWatch
from .gate import Gate
from .lazy import LazySync
from .recorder import Recorder
from .replay import REPLAYED, Replay
from .serving import Serving, torch_advance
from .starvation import Pairs, Starvation
from .stop import Stopper
from .transfers import Transfers
from .treatment import Treatment
from .watch import Watch
from .whole_epochs import NOT_SAMPLED, WholeEpochs
from .windows import Windows

COLLECTED_STEPS = REPLAYED + 2
"""Steps with real batches before replays: some loops fetch ahead, and where the last batches go is to be seen too."""

_REPLAYED_ONLY = "its batches were replayed, not loaded"
_WAITS_FOR_NOTHING: dict[str | None, str] = {
    "compute_only": _REPLAYED_ONLY,
    "host_batch": _REPLAYED_ONLY,
    "loader_only": "no training step ran: the loader was drained",
}
"""Ablations in which no training step waits for the loader."""

_now = time.monotonic_ns
_thread_ns = time.thread_time_ns


class Training:
    """Drives blocks by the training loop's own calls, and switches treatments between them.

    Args:
        spec: the parent's `ProbeSpec`, as plain JSON.
        recorder: where records go, and whom to ask what is next.
        stopper: ends the target when nothing is left to do.
        transfers: the hooks.
        serving: what the training loop is given.

    Attributes:
        block: the one in progress.
    """

    def __init__(
        self, spec: dict[str, Any], recorder: Recorder, stopper: Stopper, transfers: Transfers, serving: Serving
    ) -> None:
        self.block: Block | None = None
        self._live = spec.get("isolation") == "live"
        self._recorder = recorder
        self._stopper = stopper
        self._transfers = transfers
        self._serving = serving
        self._orders: deque[dict[str, Any]] = deque(spec["blocks"])
        self._windows = Windows(spec, recorder)
        self._due: Callable[[], None] | None = None
        """What is to be done before the next batch is given."""
        self._collector: Replay | None = None
        self._collected = 0
        self._replay: Replay | None = None
        self._dataset = DatasetWatch(recorder, serving, live=self._live)
        self._pairs = Pairs()
        self._buffers: Buffers | None = None
        self._context = contexts.MainContext(recorder)
        self._gate = Gate(recorder, serving)
        self._gated: list[dict[str, Any]] = []
        """Treatments whose batches are to be compared at the end."""
        self._chance = random.Random(0)

    # ------------------------------------------------------------------------------------------ the loop's own calls

    def begin(self) -> None:
        """The first training step is done."""
        self._be_lazy()
        if not self._serving.treatment.changes:
            self._buffers = Buffers(self._transfers)
        self._next_block()

    def enter(self, now: int) -> None:
        """The loop asks for a batch: the step before is over, and so may be its block."""
        if self._windows.step():
            self._next_window()
            self._stopper.check()
        block = self.block
        if block is not None and self._collector is None and block.enter(now):
            self._complete(block)
        while self._due is not None:
            self._due()
        if self._transfers.lazy is not None:
            self._transfers.lazy.next_step()

    def fetch(self, watch: Watch, entered: int) -> tuple[Any, int]:
        """The batch that was asked for, and its samples."""
        if self._replay is not None:
            return self._fetch_replayed(watch, self._replay, entered)
        hooked = self._transfers.tally.hooked_ns
        cpu = _thread_ns()
        asked = _now()
        try:
            data = torch_advance(watch.iterator)
        except StopIteration:
            return self.exhausted(watch, asked)
        except Exception:
            watch.arrived()
            raise
        got = _now()
        cpu = _thread_ns() - cpu
        watch.delivered += 1
        if watch.fresh:
            self._serving.first_batch(watch, data)
        if self._buffers is not None and self._buffers.arrived(data):
            self._say_buffers()
        samples = watch.samples_of(data)
        block = self.block
        if block is not None and block.step is not None:
            step = block.step
            hooked = self._transfers.tally.hooked_ns - hooked
            if hooked and block.sampling is not None:
                block.sampling.look_at_all()  # the loader moves tensors itself: a wait without these has to know them
            step.wait_ns = got - asked - hooked
            step.wait_cpu_ns = cpu
            step.samples = samples
            # a block that opens here writes and waits before its clock starts: no cost of a counted step
            step.own_ns = (asked - step.began if step.began == entered else 0) + _now() - got
            if block.starvation.asking is not None:
                step.own_ns += block.starvation.handed_over(data, step.wait_ns)
        elif self._collector is not None:
            self._collect(self._collector, data, samples)
        return data, samples

    def exhausted(self, watch: Watch, now: int) -> tuple[Any, int]:
        """Torch's iterator has no more; the batch that an iterable dataset begun again gives, and its samples.

        Raises:
            StopIteration: it is not begun again. Called where one is handled already.
        """
        self.gap(now, over=True)
        self.end_epoch(over=True)
        if not self._serving.restart(watch):
            raise  # noqa: PLE0704 - what is being handled
        entered = _now()
        self.enter(entered)
        return self.fetch(watch, entered)

    def grant(self, watch: Watch) -> None:
        """Let so many of the next steps go by `Session.serve_quickly` as nothing but counting is due in."""
        block, stream = self.block, watch.stream
        watch.granted = 0
        if block is None or self._collector is not None or self._replay is not None or self._transfers.lazy is not None:
            return
        if stream is None or stream.endless:
            watch.granted = block.grant()

    def gap(self, now: int, *, over: bool) -> None:
        """The loop leaves the training loader for something else; see `Block.gap`."""
        running = self._serving.running
        if running is not None:
            running.granted = 0
        if self.block is not None:
            self.block.gap(now, over=over)

    def end_epoch(self, *, over: bool) -> None:
        """The loop is through with an epoch; see `WholeEpochs.end_epoch`."""
        block = self.block
        if isinstance(block, WholeEpochs):
            block.end_epoch(over=over)
            if block.complete:
                self._complete(block)

    def resume(self, watch: Watch) -> Any:
        """The loop asks for an iterator again, and gets the running one."""
        self.gap(_now(), over=False)
        block = self.block
        if block is not None and block.complete:
            self._complete(block)
        stream = watch.stream
        if stream is not None:
            stream.look_ahead()
        if stream is not None and stream.epoch_is_over:
            stream.resume()
            if self._replay is None and self._due is None:
                watch.prime()
        return self._serving.held

    def finish(self, failed: str | None) -> None:
        """The target is over: write down what was measured of an unfinished block or window."""
        self._windows.close()
        self._say_buffers()
        self._serving.passages.say_rest()
        block, self.block = self.block, None
        if block is None:
            return
        block.gap(_now(), over=False)
        if isinstance(block, WholeEpochs) and not block.covers_two_queues:
            block.end_epoch(over=False)
        self._say_phase(block.order, "counted")
        if failed is not None:
            self._record(block, "failed", failed)
        elif block.covers_two_queues:
            self._record(block, "counted", "the script ended before the block's length")
        else:
            self._record(block, "short", "the script ended before two queues were counted")

    # -------------------------------------------------------------------------------------------------------- blocks

    def _next_block(self) -> None:
        if not self._orders:
            self._stop()
            return
        order = self._orders.popleft()
        as_it_is = order.get("treatment") is None and self._serving.treatment.id is None
        if self._live and not as_it_is:
            self._due = functools.partial(self._start_block, order)
        else:
            running = self._serving.running
            self._begin_block(order, running.queue if running is not None else 0)

    def _begin_block(self, order: dict[str, Any], queue: int) -> None:
        self._dataset.begin()
        whole = bool(order.get("epochs"))
        why_not = NOT_SAMPLED if whole else _WAITS_FOR_NOTHING.get(self._serving.treatment.ablation)
        starvation = Starvation(self._pairs, self._transfers, why_not)
        say_phase = functools.partial(self._say_phase, order)
        kind = WholeEpochs if whole else Block
        self.block = kind(order, queue, self._transfers, say_phase, starvation, chance=self._chance)
        if isinstance(self.block, WholeEpochs) and self._serving.running is not None:
            self.block.born(self._serving.running)

    def _start_block(self, order: dict[str, Any]) -> None:
        self._due = None
        watch, treatment = self._switch(order)
        self._begin_block(order, 0 if treatment.replayed else watch.queue)
        self._serving.start(watch)
        if treatment.replayed:
            self._collected = 0
            self._collector = Replay(self._transfers, _kind(treatment))
        elif treatment.ablation == "loader_only":
            self._due = self._drain

    def _switch(self, order: dict[str, Any]) -> tuple[Watch, Treatment]:
        """Shut the running iterator down, and prepare what the order runs under."""
        watch = self._serving.running
        assert watch is not None, "treatments are switched where the training loop asks for a batch"
        if self._replay is not None:
            self._replay.close()
            self._replay = None
        self._serving.leave(watch)
        treatment = Treatment(order.get("treatment"), order.get("intraop_threads"))
        self._serving.change(treatment)
        self._be_lazy()
        return watch, treatment

    def _be_lazy(self) -> None:
        self._transfers.lazy = LazySync() if self._serving.treatment.lazy_sync else None

    def _complete(self, block: Block) -> None:
        self._say_phase(block.order, "counted")
        self._record(block, "counted", None)
        self._context.look()
        self._ask(block)

    def _record(self, block: Block, status: str, reason: str | None) -> None:
        self._dataset.end(block.order)
        notes = self._replay.notes if self._replay is not None else []
        self._recorder.write("block", **block.record(status, reason, notes))

    def _ask(self, block: Block) -> None:
        self.block = None
        answer = self._recorder.ask()
        self._gated = answer.get("gates", [])
        if answer["then"] == "profile":
            self._windows.open(block.order["trial"], settle_steps=0)
        elif answer["then"] == "windows":
            self._windows.to_come.extend(answer["windows"])
            self._next_window()
        elif answer["then"] == "blocks":
            self._orders.extend(answer["blocks"])
            self._next_block()
        else:
            self._stop()
        self._stopper.check()

    def _stop(self) -> None:
        self._say_buffers()
        self._serving.passages.say_rest()
        if self._gated:
            self._run_gate()
        self._serving.release()
        self._stopper.begin()

    def _run_gate(self) -> None:
        watch = self._serving.running
        if watch is not None:
            self._serving.leave(watch)
        self._gate.run(watch, self._gated)

    def _say_buffers(self) -> None:
        buffers, self._buffers = self._buffers, None
        if buffers is not None:
            self._recorder.write("buffers_watched", **buffers.close())

    def _say_phase(self, order: dict[str, Any], phase: str) -> None:
        if phase == "counting":
            self._say_buffers()
        self._recorder.write("block_phase", block=order["block"], trial=order["trial"], phase=phase)

    # ----------------------------------------------------------------------------------------------------- ablations

    def _drain(self) -> None:
        """Take batches without handing any to the script, until the block is complete."""
        block, watch = self.block, self._serving.running
        assert block is not None
        assert watch is not None
        while not block.enter(_now()):
            self._stopper.check()
            self._drain_one(block, watch)
        self._due = None
        self._complete(block)

    def _drain_one(self, block: Block, watch: Watch) -> None:
        step = block.step
        assert step is not None
        cpu = _thread_ns()
        data = self._serving.take(watch)
        step.wait_ns = _now() - step.began
        step.wait_cpu_ns = _thread_ns() - cpu
        step.samples = watch.samples_of(data)

    def _collect(self, collector: Replay, data: Any, samples: int) -> None:
        collector.collect(data, samples)
        self._collected += 1
        if collector.full and self._collected >= COLLECTED_STEPS:
            self._due = self._begin_replay

    def _begin_replay(self) -> None:
        self._due = None
        collector, self._collector = self._collector, None
        block, watch = self.block, self._serving.running
        assert collector is not None
        assert block is not None
        assert watch is not None
        reason = collector.begin()
        self._serving.leave(watch)
        if reason is None:
            self._replay = collector
            return
        self._serving.refuse("replay", reason)
        self._say_phase(block.order, "counted")
        self._record(block, "failed", reason)
        self._ask(block)

    def _fetch_replayed(self, watch: Watch, replay: Replay, entered: int) -> tuple[Any, int]:
        natural = watch.stream is not None and not watch.stream.endless
        if natural and watch.stream is not None and not watch.stream.skip():
            self.gap(entered, over=True)
            raise StopIteration
        served = replay.serve()
        watch.delivered += 1
        block = self.block
        if block is not None and block.step is not None:
            block.step.samples = served.samples
            block.step.own_ns = _now() - max(entered, block.step.began)
        return served.data, served.samples

    # ------------------------------------------------------------------------------------------------------- windows

    def _next_window(self) -> None:
        if self._windows.to_come:
            self._due = functools.partial(self._start_window, self._windows.to_come.popleft())
        else:
            self._stop()

    def _start_window(self, order: dict[str, Any]) -> None:
        self._due = None
        watch, _ = self._switch(order)
        self._windows.open(order["trial"], settle_steps=watch.queue + 1)
        self._serving.start(watch)


def _kind(treatment: Treatment) -> Any:
    if treatment.ablation == "compute_only":
        return "device"
    return "pinned" if treatment.changes.get("pin_memory") else "pageable"
