"""Treatments and their names."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pindiag.model import Configuration, Treatment

DEFAULT_PREFETCH = 2
"""What torch takes when a loader with workers is given no prefetch_factor."""

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
