"""Treatments and their names."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pindiag.model import Configuration, Treatment, Tweak

DEFAULT_PREFETCH = 2
"""What torch takes when a loader with workers is given no prefetch_factor."""

COMPUTE_ONLY = "compute_only"

Changes = Mapping[str, bool | int | None]


def treatment_id(configuration: Configuration) -> str:
    """The name of a configuration, e.g. "nw4-pin1-nb1-pf4-pw"."""
    return configuration.id


def baseline_treatment(baseline: Configuration) -> Treatment:
    """The script as written, once its configuration is known."""
    return Treatment(id=treatment_id(baseline), kind="configuration", configuration=baseline)


def treatment(baseline: Configuration, changes: Changes) -> Treatment:
    """The baseline with some arguments changed.

    Arguments that a value makes meaningless are normalised: without workers there is neither prefetch nor
    persistence, and non_blocking stays unknown where the script has no transfer call to switch. Batch size is part
    of the id only where it is changed.
    """
    configuration = normalised(msgspec.structs.replace(baseline, **dict(changes)), baseline)
    effective = {name: value for name, value in changes.items() if _differs(name, configuration, baseline)}
    name = treatment_id(configuration)
    if "batch_size" in effective:
        name = f"{name}-bs{configuration.batch_size}"
    return Treatment(id=name, kind="configuration", configuration=configuration, changes=effective)


def compute_only(baseline: Configuration) -> Treatment:
    """The step alone: batches that are on the device already are replayed."""
    return Treatment(id=COMPUTE_ONLY, kind="ablation", configuration=baseline, ablation="compute_only")


def host_batch(baseline: Configuration, *, pin_memory: bool, non_blocking: bool) -> Treatment:
    """Transfer and step: batches that lie in pinned or pageable memory are replayed."""
    changes = {"pin_memory": pin_memory, "non_blocking": non_blocking}
    return Treatment(
        id=f"host_batch-pin{pin_memory:d}-nb{non_blocking:d}",
        kind="ablation",
        configuration=msgspec.structs.replace(baseline, **changes),
        changes={**changes},
        ablation="host_batch",
    )


def loader_only(baseline: Configuration, *, pin_memory: bool) -> Treatment:
    """The loader alone: no step is run."""
    return Treatment(
        id=f"loader_only-nw{baseline.num_workers}-pin{pin_memory:d}",
        kind="ablation",
        configuration=msgspec.structs.replace(baseline, pin_memory=pin_memory),
        changes={"pin_memory": pin_memory},
        ablation="loader_only",
    )


def with_intraop_threads(made: Treatment, threads: int) -> Treatment:
    """A configuration whose main thread has its intra-op threads back."""
    return _tweaked(made, "intraop_threads", threads)


def with_lazy_sync(made: Treatment) -> Treatment:
    """A configuration whose calls that wait for the device give what they gave before."""
    return _tweaked(made, "lazy_sync", True)


def with_worker_threads(made: Treatment) -> Treatment:
    """A configuration whose workers have one native thread each."""
    return _tweaked(made, "worker_threads", 1)


def with_worker_affinity(made: Treatment) -> Treatment:
    """A configuration whose workers may run on all CPUs that the script was given."""
    return _tweaked(made, "worker_affinity", True)


def with_fewer_intraop_threads(made: Treatment, threads: int) -> Treatment:
    """A configuration whose main thread computes with fewer threads."""
    return _tweaked(made, "fewer_intraop_threads", threads)


def under(tweaked: Treatment, made: Treatment) -> Treatment:
    """A configuration with the tweak that was made of the script as written."""
    changes = {**made.changes, **tweaked.changes}
    return msgspec.structs.replace(
        made, id=f"{made.id}+{tweaked.tweak}", kind="tweak", changes=changes, tweak=tweaked.tweak
    )


def _tweaked(made: Treatment, tweak: Tweak, value: bool | int) -> Treatment:
    return msgspec.structs.replace(
        made, id=f"{made.id}+{tweak}", kind="tweak", changes={**made.changes, tweak: value}, tweak=tweak
    )


def serves_pinning(accelerator: str | None) -> bool:
    """Whether pinned memory makes copies to this kind of device faster."""
    return accelerator not in (None, "cpu", "mps")


def has_pin_thread(configuration: Configuration, accelerator: str | None) -> bool:
    """Whether torch pins this loader's batches in a thread of its own."""
    return configuration.pin_memory and configuration.num_workers > 0 and serves_pinning(accelerator)


def queue(configuration: Configuration) -> int:
    """Batches in flight when the workers are ahead."""
    return configuration.num_workers * (configuration.prefetch_factor or DEFAULT_PREFETCH)


def normalised(configuration: Configuration, baseline: Configuration) -> Configuration:
    """The configuration as torch will take it."""
    workers = configuration.num_workers > 0
    return msgspec.structs.replace(
        configuration,
        prefetch_factor=(configuration.prefetch_factor or DEFAULT_PREFETCH) if workers else None,
        persistent_workers=configuration.persistent_workers and workers,
        non_blocking=None if baseline.non_blocking is None else configuration.non_blocking,
    )


def _differs(name: str, configuration: Configuration, baseline: Configuration) -> bool:
    before, after = getattr(normalised(baseline, baseline), name), getattr(configuration, name)
    if name == "prefetch_factor" and before is None:
        before = DEFAULT_PREFETCH
    if name in ("prefetch_factor", "persistent_workers") and configuration.num_workers == 0:
        return False
    return bool(before != after)
