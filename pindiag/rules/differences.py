"""In what two configurations differ, and what has to be written to come from one to the other."""

from __future__ import annotations

from collections.abc import Callable

from pindiag.model import Configuration

CONFIGURATION_KEYS = (
    "num_workers",
    "pin_memory",
    "non_blocking",
    "prefetch_factor",
    "persistent_workers",
    "batch_size",
)
Wanted = bool | int | Callable[[int], bool]


def difference(old: Configuration, new: Configuration) -> frozenset[str]:
    """Names of the arguments in which two configurations differ by choice."""
    keys = {key for key in CONFIGURATION_KEYS if getattr(old, key) != getattr(new, key)}
    if old.num_workers == 0 or new.num_workers == 0:
        keys -= {"prefetch_factor", "persistent_workers"}
    elif {old.prefetch_factor, new.prefetch_factor} <= {None, 2}:
        keys -= {"prefetch_factor"}
    return frozenset(keys)


def changes(old: Configuration, new: Configuration) -> dict[str, bool | int | None]:
    """What a user has to write to come from one configuration to the other."""
    keys = set(difference(old, new))
    if old.num_workers == 0 and new.num_workers > 0:
        keys |= {"persistent_workers"} if new.persistent_workers else set()
        keys |= {"prefetch_factor"} if new.prefetch_factor not in (None, 2) else set()
    return {key: getattr(new, key) for key in CONFIGURATION_KEYS if key in keys}


def meets(configuration: Configuration, key: str, wanted: Wanted) -> bool:
    """Whether an argument is what is wanted, or satisfies it."""
    value = getattr(configuration, key)
    return wanted(value) if callable(wanted) else bool(value == wanted)
