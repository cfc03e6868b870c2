"""What there is about each treatment, gathered once: its launches, blocks, samples, worker batches, trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

from pindiag.analysis.gpu import gpu_step, with_cure
from pindiag.analysis.main_thread import MainThread
from pindiag.analysis.samplers import Window, sampler_figures
from pindiag.analysis.stages import Totals
from pindiag.analysis.trace import Event
from pindiag.analysis.workers import WorkerFigures, worker_figures
from pindiag.journal import Journal, Launch, steady_rate, usable
from pindiag.model import (
    AnyRecord,
    Block,
    BlockOrder,
    BlockPhase,
    DatasetChanged,
    GpuStep,
    Isolation,
    LoaderChosen,
    LoaderIterated,
    LoaderMade,
    MemoryRead,
    RunSpec,
    Sample,
    SamplerFigures,
    TrainingLoop,
    Treatment,
    TreatmentApplied,
    TreatmentRefused,
    WorkerBatch,
)
from pindiag.model import Window as ProfilerWindow

NO_LOADER = "the training loader was never found"
NO_WORKERS = "no workers under this configuration"
REPLAYED = "its batches were replayed, not loaded"


class RunEvidence:
    """Everything that a run left."""

    def __init__(
        self,
        spec: RunSpec,
        records: Sequence[AnyRecord],
        batches: Sequence[WorkerBatch],
        traces: Mapping[str, Sequence[Event] | str],
    ) -> None:
        self.spec = spec
        self.journal = Journal(records)
        self.batches: dict[int, list[WorkerBatch]] = defaultdict(list)
        for batch in sorted(batches, key=lambda batch: batch.started_ns):
            self.batches[batch.launch].append(batch)
        self.traces = {self.journal.trial(name): trace for name, trace in traces.items()}
        self.trials = [TrialEvidence(self, treatment) for treatment in self.journal.treatments.values()]

    @property
    def found(self) -> LoaderChosen | None:
        """The training loader of the script as written."""
        return self.journal.chosen

    @cached_property
    def has_accelerator(self) -> bool:
        """Whether torch offers one."""
        return self.found is not None and self.found.accelerator is not None

    @cached_property
    def made(self) -> LoaderMade | None:
        """The constructor's call of the training loader."""
        makings = (made for launch in self.journal.launches for made in launch.all(LoaderMade))
        return next((made for made in makings if self.found is not None and made.key == self.found.key), None)

    @cached_property
    def loop(self) -> TrainingLoop | None:
        """The training loop as it is written, where that was read."""
        return next((found for launch in self.journal.launches for found in launch.all(TrainingLoop)), None)

    @cached_property
    def samples(self) -> list[Sample]:
        """All samples in the order of time."""
        return [sample for launch in self.journal.launches for sample in launch.all(Sample)]

    @cached_property
    def settling_ns(self) -> dict[int, int]:
        """When each block began to settle."""
        phases = (phase for launch in self.journal.launches for phase in launch.all(BlockPhase))
        return {phase.block: phase.t_ns for phase in phases if phase.phase == "settling"}

    def baseline(self) -> TrialEvidence | None:
        """The script as written."""
        return next((trial for trial in self.trials if trial.id == self.journal.baseline_id), None)


def left_out(launch: Launch, block: Block) -> str | None:
    """Why a block that went well counts for nothing; None where it counts, did not go well, or was repeated."""
    if not usable(block) or block in launch.counted or block.block in launch.replaced:
        return None
    for applied in launch.all(TreatmentApplied):
        if applied.trial == block.trial and applied.refused:
            return "; ".join(f"{name} could not be changed: {reason}" for name, reason in applied.refused.items())
    what = next((changed.what for changed in launch.all(DatasetChanged)), "unknown")
    return f"the dataset had changed by then, while it served in the main process ({what})"


class TrialEvidence:
    """What there is about one treatment; live and fresh are never mixed.

    Verification counts in nothing here, but for what was compared over whole epochs only.
    """

    def __init__(self, run: RunEvidence, treatment: Treatment) -> None:
        self.run = run
        self.treatment = treatment
        self.id = treatment.id
        self.configuration = treatment.configuration

    @cached_property
    def isolation(self) -> Isolation:
        """Where its figures come from: fresh rounds judge what ran in both, but every live round needs its baseline."""
        counted = {launch.isolation for launch in self._raced if self._counted(launch)}
        if len(counted) == 2:
            return "live" if self.id == self.run.journal.baseline_id else "fresh"
        turns = [launch for launch in self._raced if self._counted(launch)]
        turns = turns or [launch for launch in self._raced if self._tried(launch)]
        turns = turns or [launch for launch in self._raced if self._planned(launch)]
        return turns[-1].isolation if turns else "fresh"

    @cached_property
    def launches(self) -> list[Launch]:
        """The launches of the race in which it had a turn."""
        return [launch for launch in self._raced if launch.isolation == self.isolation and self._tried(launch)]

    @property
    def over_epochs_only(self) -> bool:
        """Whether it had no turn in the race, since blocks of steps do not tell what it brings."""
        return bool(self._verifying) and not any(self._planned(launch) or self._tried(launch) for launch in self._races)

    @property
    def _raced(self) -> list[Launch]:
        return self._verifying if self.over_epochs_only else self._races

    @property
    def _races(self) -> list[Launch]:
        return [launch for launch in self.run.journal.launches if launch.purpose in ("discover", "round")]

    @property
    def _verifying(self) -> list[Launch]:
        launches = (launch for launch in self.run.journal.launches if launch.purpose == "verify")
        return [launch for launch in launches if launch.treatment is not None and launch.treatment.id == self.id]

    def _tried(self, launch: Launch) -> bool:
        """Whether a launch ran it, was to run it next, or would not run it."""
        turns: list[Block | TreatmentRefused] = [*launch.all(Block), *launch.all(TreatmentRefused)]
        return self._pending(launch) or any(self._mine(turn) for turn in turns)

    def _pending(self, launch: Launch) -> bool:
        """Whether its block is the one that runs, or in which the launch ended."""
        return launch.unfinished is not None and self._mine(launch.unfinished)

    def _planned(self, launch: Launch) -> bool:
        return any(made.id == self.id for order in launch.orders for made in order.planned)

    def _mine(self, record: Block | BlockOrder | MemoryRead | ProfilerWindow | TreatmentRefused) -> bool:
        return self.run.journal.trial(record.trial) == self.id

    def _counted(self, launch: Launch) -> list[Block]:
        return [block for block in launch.counted if self._mine(block)]

    @cached_property
    def blocks(self) -> list[Block]:
        """Its blocks that count."""
        return [block for launch in self.launches for block in self._counted(launch)]

    @cached_property
    def totals(self) -> Totals:
        """Sums over its blocks."""
        return Totals(self.blocks)

    @cached_property
    def rates(self) -> list[float]:
        """Samples a second, a value a block; of whole epochs, over the steps that a block of steps would count."""
        return [steady_rate(block) or block.samples / block.seconds for block in self.blocks]

    @cached_property
    def sampler(self) -> SamplerFigures | None:
        """What was sampled while its blocks counted; in a live launch, none of what served before them."""
        served_ns = self.run.settling_ns if self.isolation == "live" else {}
        return sampler_figures(
            Window(launch.all(Sample), block, served_ns.get(block.block, 0))
            for launch in self.launches
            for block in self._counted(launch)
        )

    @cached_property
    def workers(self) -> WorkerFigures | None:
        """What its workers' rings say."""
        return worker_figures(self.blocks, self.run.batches)

    @cached_property
    def window(self) -> ProfilerWindow | None:
        """Its profiler window."""
        windows = (window for launch in self._raced for window in launch.all(ProfilerWindow))
        found = [window for window in windows if self._mine(window)]
        return next((window for window in found if window.trace is not None), found[0] if found else None)

    @property
    def trace(self) -> Sequence[Event] | str:
        """The events of its profiler window, or the reason why there are none."""
        trace = self.run.traces.get(self.id)
        if trace is not None:
            return trace
        if self.window is None:
            return "no profiler window ran"
        return with_cure(self.window.reason or "the trace is missing")

    @cached_property
    def gpu(self) -> GpuStep | str:
        """The GPU in a mean step, or the reason why it is not known."""
        found = self.run.found
        if found is None or found.accelerator is None:
            return "no accelerator"
        return self.trace if isinstance(self.trace, str) else gpu_step(self.trace, found.accelerator, self.main_thread)

    @cached_property
    def main_thread(self) -> MainThread | None:
        """What its main thread did in the profiler window; None where no trace marks a step."""
        return None if isinstance(self.trace, str) else MainThread.of(self.trace)

    @cached_property
    def memory(self) -> list[MemoryRead]:
        """Proportional set sizes at the end of its blocks."""
        return self.run.journal.memory(self.launches, self.id)

    def memory_bytes(self, field: str) -> int | None:
        """Median of a field of these readings."""
        return self.run.journal.read_bytes(self.launches, self.id, field)

    @cached_property
    def pinned_bytes(self) -> int | None:
        """Most that the pinned allocator held at the end of a block."""
        return self.run.journal.pinned_bytes(self.launches, self.id)

    @cached_property
    def births(self) -> list[LoaderIterated]:
        """Iterators of the training loader that began its turns."""
        return self.run.journal.births(self.launches, self.id)

    @cached_property
    def startup_s(self) -> float | None:
        """Median time from `__iter__` to the first batch."""
        return self.run.journal.startup_s(self.launches, self.id)

    @cached_property
    def failure(self) -> str | None:
        """Why its last turn gave no block that counts; None where it gave one, or had none."""
        if not self.launches:
            return None
        last = self.launches[-1]
        own = [block for block in last.all(Block) if self._mine(block)]
        if not self._pending(last) and (not own or usable(own[-1])):
            return None
        if last.ended is None:
            return "the run ended while it was being measured"
        said = next((block.reason for block in reversed(own) if block.reason and not usable(block)), None)
        return last.ended.reason or said or f"no block was counted ({last.ended.exit})"

    @property
    def broke(self) -> bool:
        """Whether its last launch failed, rather than being stopped or cut."""
        ended = self.launches[-1].ended if self.launches else None
        return ended is not None and ended.status == "failed"

    @property
    def refused(self) -> str | None:
        """Why it was not to be run, or not to be counted: the machine could not hold it, the loader not be changed."""
        refusals = [refused for launch in self.launches for refused in launch.all(TreatmentRefused)]
        reckoned = next((refused.reason for refused in refusals if self._mine(refused)), None)
        blocks = [(launch, block) for launch in self.launches for block in launch.all(Block) if self._mine(block)]
        return reckoned or next((reason for launch, block in blocks if (reason := left_out(launch, block))), None)

    @property
    def predicted(self) -> float | None:
        """What it was predicted to reach at most before it ran, or where it was left out for that: samples/s."""
        return self.run.journal.predicted.get(self.id)

    @property
    def replayed(self) -> bool:
        """Whether it is an ablation that runs without the loader."""
        return self.treatment.ablation in ("compute_only", "host_batch")

    @property
    def without_workers(self) -> str | None:
        """Why no worker serves it; None where some do."""
        if self.replayed:
            return REPLAYED
        return None if self.configuration.num_workers else NO_WORKERS

    @property
    def source(self) -> str:
        """Names its blocks."""
        numbers = ", ".join(str(block.block) for block in self.blocks)
        return f"blocks {numbers}" if len(self.blocks) != 1 else f"block {numbers}"
