"""Facts: derived numbers with unit and source, or null with a reason. What rules read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import median_low

from pindiag import gate, race
from pindiag.analysis.disturbances import of_disturbances
from pindiag.analysis.evidence import NO_LOADER, REPLAYED, RunEvidence, TrialEvidence
from pindiag.analysis.fact import fact as _fact
from pindiag.analysis.failures import of_failures
from pindiag.analysis.loop_facts import of_loop
from pindiag.analysis.machine_facts import of_machine, of_sampler
from pindiag.analysis.memory_facts import of_dataset, of_growth
from pindiag.analysis.open_files import growth, of_open_files
from pindiag.analysis.other_loaders import of_other_loaders
from pindiag.analysis.pipeline_facts import in_flight_batches, of_pinning, of_workers
from pindiag.analysis.stall_facts import of_stalls
from pindiag.analysis.starvation_facts import of_starvation
from pindiag.analysis.trials import estimate
from pindiag.analysis.wait_facts import of_waits
from pindiag.analysis.window_facts import of_window
from pindiag.model import (
    DatasetChanged,
    Fact,
    LaunchStarted,
    LoaderChosen,
    NoiseFloor,
    TargetFigures,
)

NO_LIVE = "no live launch ran"
NO_STEP = "no training step ran: the loader was drained"
NO_TRANSFER = "no call that moves a batch to a device was seen"


def facts(run: RunEvidence, noise: NoiseFloor, target: TargetFigures) -> list[Fact]:
    """All facts of a run: those of the whole, then those of each trial that was measured."""
    found = list(_of_run(run, noise, target))
    for trial in run.trials:
        if trial.blocks:
            found += _of_trial(trial)
    return found


def _of_run(run: RunEvidence, noise: NoiseFloor, target: TargetFigures) -> Iterator[Fact]:
    found = run.found
    chosen = "the training loader's first batch"
    yield _fact(
        "accelerator_present", None if found is None else found.accelerator is not None, None, "torch", NO_LOADER
    )
    yield from of_machine(run)
    yield from of_other_loaders(run)
    yield from of_loop(run)
    yield from of_failures(run)
    yield from of_open_files(run)
    yield from of_dataset(run)
    of_loader: tuple[tuple[str, str, str | None], ...] = (
        ("batch_bytes", "batch_bytes", "B"),
        ("sample_bytes", "sample_bytes", "B"),
        ("batch_samples", "batch_samples", "samples"),
        ("tensors_per_batch", "tensors", "tensors"),
        ("batches_per_epoch", "batches_per_epoch", "batches"),
    )
    for name, attribute, of_unit in of_loader:
        absent = {"batches_per_epoch": "the loader has no length"}
        reason = NO_LOADER if found is None else absent.get(attribute, "not recorded")
        yield _fact(name, getattr(found, attribute, None), of_unit, chosen, reason)
    yield _start_method(run)
    asked = None if run.made is None else run.made.configuration.pin_memory
    yield _fact("pin_asked", asked, None, "the loader's constructor", NO_LOADER)
    yield _fact("noise_floor_ratio", noise.ratio, "1", noise.source, noise.source)
    available = [sample.memory_available_bytes for sample in run.samples if sample.memory_available_bytes is not None]
    yield _fact("memory_available_min_bytes", min(available, default=None), "B", "sampler, whole run", "not sampled")
    swap = [sample.swap_used_bytes for sample in run.samples if sample.swap_used_bytes is not None]
    growth = max(swap) - swap[0] if swap else None
    yield _fact("swap_growth_bytes", growth, "B", "sampler, whole run", "not sampled")
    yield _fact("target_status", target.status, None, "launches", "not known")
    error = None if target.error is None else target.error.strip().splitlines()[-1]
    yield _fact("target_error", error, None, "launches", "the script raised nothing under its own configuration")
    yield from _of_live_launches(run)
    yield from of_disturbances(run)
    yield from _of_starts(run)
    yield from _of_versions(run)
    yield _unsafe_copies(run)
    for pin_thread in (True, False):
        yield _intraop_threads(run, pin_thread)


def _start_method(run: RunEvidence) -> Fact:
    """Of the script's own workers; where it has none, of those that a treatment gave it."""
    births = (born for launch in run.journal.launches for born in launch.worker_starts)
    own = None if run.found is None else run.found.start_method
    method = own or next((born.start_method for born in births if born.start_method is not None), None)
    reason = NO_LOADER if run.found is None else "no workers were started"
    return _fact("start_method", method, None, "births of iterators of the training loader", reason)


def _of_live_launches(run: RunEvidence) -> Iterator[Fact]:
    live = [launch for launch in run.journal.launches if launch.isolation == "live"]
    drift = race.drifts(run.journal) if live else None
    yield _fact("live_drift", drift, None, "the baseline's blocks in each live launch, in their order", NO_LIVE)
    changed = next((record for launch in live for record in launch.all(DatasetChanged)), None)
    what = None if changed is None else changed.what
    source = "live launches" if changed is None else f"launch {changed.launch}, block {changed.block}"
    yield _fact("dataset_changed", what, None, source, "it was as before wherever it was compared" if live else NO_LIVE)


def _of_starts(run: RunEvidence) -> Iterator[Fact]:
    """What starting workers took of the live launches, and what it did to the length of blocks."""
    live = [launch for launch in run.journal.launches if launch.isolation == "live"]
    starts_s = [born.first_batch_ms / 1e3 for launch in live for born in launch.worker_starts if born.first_batch_ms]
    spent_s = sum(launch.spent_s for launch in live)
    share = min(sum(starts_s) / spent_s, 1.0) if starts_s and spent_s else None
    source = f"{len(starts_s)} starts in live launches"
    yield _fact("race_startup_share", share, "1", source, "no live launch started workers" if live else NO_LIVE)
    latest_first = (order for launch in reversed(live) for order in reversed(launch.block_orders))
    why = next((order.why_seconds for order in latest_first if order.why_seconds is not None), None)
    rounds = max((mean.count for mean in race.standings(run.journal).values()), default=0)
    words = None if why is None else f"{why}: {rounds} round{'s' * (rounds != 1)} of configurations"
    yield _fact("block_length", words, None, "orders of live launches", "blocks had the usual length")


def _of_versions(run: RunEvidence) -> Iterator[Fact]:
    started = next((record for launch in run.journal.launches for record in launch.all(LaunchStarted)), None)
    for name, absent in (
        ("torch_version", "no launch started"),
        ("python_version", "no launch started"),
        ("allocator_settings", "the environment sets none, or was not noted"),
    ):
        yield _fact(name, getattr(started, name, None), None, "the first launch", absent)


def _unsafe_copies(run: RunEvidence) -> Fact:
    """How many places of the script as written; the source names them."""
    places = gate.unsafe_copies(run.journal)
    source = ", ".join(places) if places else "the first batches of the script as written"
    reason = "host memory that is copied was not watched"
    return _fact("unsafe_copies", None if places is None else len(places), "places", source, reason)


def _intraop_threads(run: RunEvidence, pin_thread: bool) -> Fact:
    """The main thread's number in a process that has, or has not, had a pin thread; null without an accelerator."""
    name = "intraop_threads_pin_thread" if pin_thread else "intraop_threads_no_pin_thread"
    told = next((found for found in _first_choices(run) if _has_pin_thread(found) is pin_thread), None)
    number = None if told is None or not run.has_accelerator else told.intraop_threads
    source = "no launch" if told is None else f"launch {told.launch}, after its first batch"
    reason = f"no fresh process {'with' if pin_thread else 'without'} a pin thread told it"
    return _fact(name, number, "threads", source, reason if run.has_accelerator else "no accelerator, so no pin thread")


def _first_choices(run: RunEvidence) -> Iterator[LoaderChosen]:
    """Of launches in which nothing had set the number before: not those that began with another treatment's block."""
    for launch in run.journal.launches:
        found = launch.first(LoaderChosen)
        if found is not None and (launch.isolation == "fresh" or launch.purpose == "discover"):
            yield found


def _has_pin_thread(found: LoaderChosen) -> bool:
    return found.configuration.pin_memory and found.configuration.num_workers > 0


def _of_trial(trial: TrialEvidence) -> Iterator[Fact]:
    rate = estimate(trial.rates).median
    yield _fact("samples_per_second", rate, "samples/s", trial.source, "not measured", trial=trial.id)
    of_main_thread = (_stages, of_stalls, of_starvation, _transfers, _syncs, _hand_pins)
    for part in (*of_main_thread, of_pinning, of_workers, of_sampler, _memory, of_window):
        yield from part(trial)
    yield growth(trial)
    yield of_growth(trial)
    yield from of_waits(trial)


def _stages(trial: TrialEvidence) -> Iterator[Fact]:
    totals, source, unknown = trial.totals, trial.source, "not measured"
    no_step = NO_STEP if trial.treatment.ablation == "loader_only" else None

    def fact(name: str, value: float | None, unit: str, reason: str | None) -> Fact:
        return _fact(name, None if no_step else value, unit, source, no_step or reason or unknown, trial=trial.id)

    stages = totals.stages()
    yield fact("step_ms", totals.step_ms, "ms", None)
    for stage in ("wait", "transfer", "synchronise", "optimizer", "script"):
        yield fact(f"{stage}_ms", getattr(stages, stage), "ms", totals.missing(f"{stage}_ms"))
    for stage in ("wait", "transfer", "synchronise"):
        value = getattr(stages, stage)
        share = value / totals.step_ms if value is not None and totals.step_ms else None
        yield fact(f"{stage}_share", share, "1", totals.missing(f"{stage}_ms"))
    waited = sum(block.wait_ms for block in trial.blocks)
    on_cpu = totals.stage_ms("wait_cpu_ms")
    share = min(on_cpu * totals.steps / waited, 1.0) if on_cpu is not None and waited > 0 else None
    yield fact("wait_cpu_share", share, "1", totals.missing("wait_cpu_ms") or "it did not wait")


def _transfers(trial: TrialEvidence) -> Iterator[Fact]:
    sites = [site for block in trial.blocks for site in block.transfers]
    calls, moved, took = (sum(getattr(site, field) for site in sites) for field in ("calls", "bytes", "ms"))
    steps = trial.totals.steps
    reason = trial.totals.missing("transfer_ms") or NO_TRANSFER
    values: list[tuple[str, float | None, str]] = [
        ("transfer_bytes_per_step", moved / steps if calls and steps else None, "B"),
        ("transfer_calls_per_step", calls / steps if calls and steps else None, "calls"),
        ("transfer_gb_per_s", moved / took / 1e6 if took else None, "GB/s"),
        ("transfer_pinned_share", sum(site.pinned_calls for site in sites) / calls if calls else None, "1"),
        ("transfer_non_blocking_share", sum(site.non_blocking_calls for site in sites) / calls if calls else None, "1"),
    ]
    for name, value, unit in values:
        yield _fact(name, value, unit, trial.source, reason, trial=trial.id)


def _syncs(trial: TrialEvidence) -> Iterator[Fact]:
    """Calls that wait for the device, with the place that waits longest."""
    sites = [site for block in trial.blocks for site in block.syncs]
    steps = trial.totals.steps
    unseen = trial.totals.missing("synchronise_ms") or (None if trial.run.has_accelerator else "no accelerator")
    known = steps and unseen is None
    worst = max(sites, key=lambda site: (site.ms, site.calls), default=None)
    source = trial.source if worst is None else f"{worst.location}, {worst.kind}; {trial.source}"
    for name, total, unit in (
        ("syncs_per_step", sum(site.calls for site in sites), "calls"),
        ("sync_ms_per_step", sum(site.ms for site in sites), "ms"),
        ("lazy_syncs_per_step", sum(site.lazy_calls for site in sites), "calls"),
    ):
        yield _fact(name, total / steps if known else None, unit, source, unseen or "not measured", trial=trial.id)


def _hand_pins(trial: TrialEvidence) -> Iterator[Fact]:
    """The script's own pinning in the main thread, with its places, the one that takes longest first."""
    took: dict[str, float] = defaultdict(float)
    sites = [site for block in trial.blocks for site in block.pins]
    for site in sites:
        took[site.location] += site.ms
    places = ", ".join(sorted(took, key=lambda place: -took[place]))
    source = f"{places}; {trial.source}" if places else trial.source
    steps, ms = trial.totals.steps, trial.totals.stage_ms("hand_pin_ms")
    known = steps and ms is not None
    reason = trial.totals.missing("hand_pin_ms") or "not measured"
    for name, value, unit in (
        ("hand_pin_ms_per_step", ms or 0.0, "ms"),
        ("hand_pins_per_step", sum(site.calls for site in sites) / max(steps, 1), "calls"),
        ("hand_pin_bytes_per_step", sum(site.bytes for site in sites) / max(steps, 1), "B"),
    ):
        yield _fact(name, value if known else None, unit, source, reason, trial=trial.id)


def _memory(trial: TrialEvidence) -> Iterator[Fact]:
    unread = next((read.reason for read in trial.memory if read.reason), "not read")
    source = f"read at the end of {trial.source}"
    yield _fact("pss_bytes", trial.memory_bytes("pss_bytes"), "B", source, unread, trial=trial.id)
    yield _fact("shm_bytes", trial.memory_bytes("shm_bytes"), "B", source, unread, trial=trial.id)
    found = trial.run.found
    in_flight = None if found is None or trial.replayed else in_flight_batches(trial) * found.batch_bytes
    reason = REPLAYED if trial.replayed else NO_LOADER
    yield _fact("in_flight_bytes", in_flight, "B", "workers × prefetch_factor × batch", reason, trial=trial.id)
    numbers = [block.intraop_threads for block in trial.blocks if block.intraop_threads is not None]
    threads = median_low(numbers) if numbers else None
    reason = "it was not read: no OpenMP library that tells it"
    yield _fact("intraop_threads", threads, "threads", source, reason, trial=trial.id)
    born = "from __iter__ to the first batch, median over its turns"
    yield _fact("startup_s", trial.startup_s, "s", born, "no first batch was timed", trial=trial.id)
