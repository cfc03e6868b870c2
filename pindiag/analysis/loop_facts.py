"""Facts of the training loop as it is written: its loader, its clocks, and who holds a CUDA context."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from pindiag.analysis.evidence import NO_LOADER, RunEvidence, TrialEvidence
from pindiag.analysis.fact import fact
from pindiag.model import ClockSeen, ContextsSeen, Fact, SyncSite, TrainingLoop, TransferSite

NO_LOOP = "no `for` of the script's own that trains was found in its source, or it was recorded before it was looked at"
NO_CLOCK = "no clock is started and read around the step within one pass of the training loop"
NOT_MADE_OUT = "where the loader was made could not be told"
NOT_NOTED = "recorded before it was noted"
NO_BASELINE = "the script as written was not measured"
NO_ACCELERATOR = "no accelerator"
NO_CONTEXT = "no CUDA context of the main process was noted"
SYNCHRONISE = ("torch.cuda.synchronize", "torch.accelerator.synchronize", "Stream.synchronize", "Event.synchronize")


def of_loop(run: RunEvidence) -> Iterator[Fact]:
    """Facts of the whole run."""
    loop = run.loop
    yield from _of_loader(run, loop)
    yield from _of_contexts(run)
    yield from _of_clocks(loop, run.baseline())


# ------------------------------------------------------------------------------------------------------ the loader


def _of_loader(run: RunEvidence, loop: TrainingLoop | None) -> Iterator[Fact]:
    rebuilt = None if loop is None else loop.rebuilt
    place = "the source of the script" if loop is None else f"the one at {loop.location}"
    yield fact("loader_rebuilt", rebuilt, None, place, NO_LOOP if loop is None else NOT_MADE_OUT)
    share, source = _startup_share(run)
    reason = "the loader has no length, or no start of it was timed"
    yield fact("loader_startup_share", share, "1", source, reason)
    whole = None if run.found is None else run.found.fetches_batches
    yield fact("dataset_fetches_batches", whole, None, "the dataset", NO_LOADER if run.found is None else NOT_NOTED)


def _startup_share(run: RunEvidence) -> tuple[float | None, str]:
    """From the call of `__iter__` to the first batch, less the making of any batch, of a natural epoch with both."""
    found, baseline = run.found, run.baseline()
    if found is None or found.batches_per_epoch is None or baseline is None:
        return None, "no start"
    born_s, rates = baseline.startup_s, baseline.rates
    if born_s is None or not rates:
        return None, "no start"
    startup_s = max(born_s - _batch_s(baseline), 0.0)
    running_s = found.batches_per_epoch * found.batch_samples / median(rates)
    source = f"a start of {startup_s:.3g} s, {found.batches_per_epoch} batches in {running_s:.3g} s; {baseline.source}"
    return startup_s / (startup_s + running_s), source


def _batch_s(trial: TrialEvidence) -> float:
    """What a worker takes to make a batch; 0 where that is not known."""
    mean = None if trial.workers is None else trial.workers.mean_ms
    return 0.0 if mean is None else ((mean.fetch or 0.0) + (mean.collate or 0.0)) / 1e3


# --------------------------------------------------------------------------------------------------- CUDA contexts


def _of_contexts(run: RunEvidence) -> Iterator[Fact]:
    seen = [(launch, launch.all(ContextsSeen)) for launch in run.journal.launches]
    mains = [one for _, found in seen for one in found if one.worker is None]
    known = bool(mains) and run.has_accelerator
    reason = NO_CONTEXT if run.has_accelerator else NO_ACCELERATOR
    workers = {launch.id: {one.pid for one in found if one.worker is not None} for launch, found in seen}
    most = max(workers, key=lambda launch: len(workers[launch]), default=0)
    source = f"workers of launch {most}"
    yield fact("worker_contexts", len(workers[most]) if known else None, "processes", source, reason)
    trained = (run.found.device if run.found is not None else None) or ""
    own = int(trained.rpartition(":")[2]) if trained.rpartition(":")[2].isdigit() else 0
    others = sorted({number for one in mains for number in one.devices} - {own})
    source = f"cuda:{', cuda:'.join(map(str, others))}" if others else "the main process"
    yield fact("other_gpu_contexts", len(others) if known else None, "GPUs", source, reason)


# ---------------------------------------------------------------------------------------------------------- clocks


@dataclass(frozen=True)
class _LeftOut:
    """What a clock in the training loop does not see of a mean step."""

    clock: ClockSeen
    wait_ms: float
    elsewhere_ms: float
    """Copies, and calls that wait for the device, in lines of the loop that the clock does not span."""
    places: tuple[str, ...]

    @property
    def ms(self) -> float:
        return self.wait_ms + self.elsewhere_ms


def _of_clocks(loop: TrainingLoop | None, trial: TrialEvidence | None) -> Iterator[Fact]:
    steps = 0 if trial is None else trial.totals.steps
    step_ms = None if trial is None else trial.totals.step_ms
    none_told = NO_LOOP if loop is None else None if loop.clocks else NO_CLOCK
    reason = none_told or NO_BASELINE
    worst = None
    if loop is not None and trial is not None and steps and step_ms:
        worst = max((_left_out(loop, clock, trial) for clock in loop.clocks), key=lambda one: one.ms, default=None)
    file = "" if loop is None else loop.location.rpartition(":")[0]
    source = "no clock" if worst is None else f"the clock of lines {worst.clock.started} to {worst.clock.read}"
    beside = f"{source}; {', '.join(worst.places) or 'nothing else'}" if worst is not None else source
    place = None if worst is None else f"{file}:{worst.clock.started}"
    yield fact("clock_place", place, None, source, reason)
    share = min(worst.ms / step_ms, 1.0) if worst is not None and step_ms else None
    yield fact("clock_left_out_share", share, "1", beside, reason)
    yield fact("clock_left_out_wait_ms", None if worst is None else worst.wait_ms, "ms", source, reason)
    yield fact("clock_left_out_elsewhere_ms", None if worst is None else worst.elsewhere_ms, "ms", beside, reason)
    sites = [] if worst is None or loop is None or trial is None else _synchronised(loop, trial)
    calls = None if worst is None else sum(site.calls for site in sites) / steps
    named = ", ".join(sorted({site.location for site in sites})) or source
    yield fact("clock_synchronisations_per_step", calls, "calls", named, reason)


def _left_out(loop: TrainingLoop, clock: ClockSeen, trial: TrialEvidence) -> _LeftOut:
    sites = [*_in_loop(loop, [site for block in trial.blocks for site in block.syncs])]
    sites += _in_loop(loop, [site for block in trial.blocks for site in block.transfers])
    outside = [site for site in sites if not clock.started <= _line(site) <= clock.read]
    wait_ms = trial.totals.stage_ms("wait_ms")
    return _LeftOut(
        clock=clock,
        wait_ms=0.0 if clock.wait_is_timed or wait_ms is None else wait_ms,
        elsewhere_ms=sum(site.ms for site in outside) / trial.totals.steps,
        places=tuple(sorted({site.location for site in outside})),
    )


def _synchronised(loop: TrainingLoop, trial: TrialEvidence) -> list[SyncSite | TransferSite]:
    sites = [site for block in trial.blocks for site in block.syncs if site.kind in SYNCHRONISE]
    return _in_loop(loop, sites)


def _in_loop(loop: TrainingLoop, sites: list[SyncSite] | list[TransferSite]) -> list[SyncSite | TransferSite]:
    file, _, first = loop.location.rpartition(":")
    own = [site for site in sites if site.location.rpartition(":")[0] == file]
    return [site for site in own if int(first) < _line(site) <= loop.last_line]


def _line(site: SyncSite | TransferSite) -> int:
    line = site.location.rpartition(":")[2]
    return int(line) if line.isdigit() else 0
