"""Which configurations to try: those that `--grid` asks for, or the default ones."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Iterable

from pindiag.errors import GridError
from pindiag.model import Configuration, Treatment
from pindiag.plan.treatments import DEFAULT_PREFETCH, Changes, serves_pinning, treatment, treatment_id

MOST_BY_DEFAULT = 10
"""Beside the baseline. More would leave too few rounds of each in five minutes."""

Axes = dict[str, list[bool | int]]

_ON_OFF = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}
_EXAMPLE = 'Write for example --grid "num_workers=0,2,4 pin_memory=on,off".'


def _switch(text: str) -> bool:
    return _ON_OFF[text.lower()]


def _at_least(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise ValueError(text)
        return value

    return parse


_ARGUMENTS: dict[str, tuple[Callable[[str], bool | int], str]] = {
    "num_workers": (_at_least(0), "a whole number from 0"),
    "pin_memory": (_switch, "on or off"),
    "non_blocking": (_switch, "on or off"),
    "prefetch_factor": (_at_least(1), "a whole number from 1"),
    "persistent_workers": (_switch, "on or off"),
    "batch_size": (_at_least(1), "a whole number from 1"),
}


def parse_grid(text: str) -> Axes:
    """Values by argument, from e.g. "num_workers=0,2,4 pin_memory=on,off".

    Raises:
        GridError: an argument is unknown or named twice, or a value is impossible.
    """
    axes: Axes = {}
    for word in re.split(r"[\s;]+", text.strip()):
        name, equals, values = word.partition("=")
        if not equals:
            raise GridError(f"--grid: {word!r} is not NAME=VALUE,VALUE.", _EXAMPLE)
        if name not in _ARGUMENTS:
            raise GridError(f"--grid: there is no argument {name!r}.", _suggestion(name))
        if name in axes:
            raise GridError(f"--grid names {name} twice.", "Join its values by commas.")
        axes[name] = [_value(name, value) for value in values.split(",")]
    return axes


def _suggestion(name: str) -> str:
    near = difflib.get_close_matches(name, _ARGUMENTS, n=1)
    return f"Did you mean {near[0]}?" if near else f"Known are {', '.join(_ARGUMENTS)}."


def _value(name: str, text: str) -> bool | int:
    parse, allowed = _ARGUMENTS[name]
    try:
        return parse(text)
    except (KeyError, ValueError):
        raise GridError(f"--grid: {name} cannot be {text!r}.", f"It takes {allowed}.") from None


def asked_treatments(axes: Axes, baseline: Configuration) -> list[Treatment]:
    """Every combination of a grid, as changes of the baseline; equal ones once, the baseline itself left out."""
    combinations = (dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))
    return _distinct(combinations, baseline)


def default_treatments(
    baseline: Configuration, usable_cpus: int, accelerator: str | None, *, live: bool = False
) -> list[Treatment]:
    """At least six configurations that differ from the baseline, best guesses first.

    With an accelerator that pinned memory serves, the three-way comparison (no pin; pin; pin and non_blocking) at
    the script's own workers comes first, then numbers of workers. Without one, pinning is compared only if the
    script asks for it.

    Args:
        baseline: what the script itself says.
        usable_cpus: CPUs that the target may really use.
        accelerator: the device type that torch offers, None where there is none.
        live: for blocks of one launch. Persistent workers save a start-up an epoch, which no block shows.
    """
    pins = serves_pinning(accelerator)
    guesses = _with_accelerator(baseline, usable_cpus) if pins else _without_accelerator(baseline, usable_cpus)
    if live:
        guesses = [changes for changes in guesses if "persistent_workers" not in changes]
    return _distinct(guesses, baseline)[:MOST_BY_DEFAULT]


def whole_grid(baseline: Configuration, usable_cpus: int, accelerator: str | None) -> list[Treatment]:
    """Every combination that may pay somewhere: workers from 0 to twice the CPUs, pinning, prefetching.

    Args:
        baseline: what the script itself says.
        usable_cpus: CPUs that the target may really use.
        accelerator: the device type that torch offers, None where there is none.
    """
    powers = [2**power for power in range(20) if 2**power <= 2 * usable_cpus]
    workers = sorted({0, *powers, usable_cpus, 2 * usable_cpus, baseline.num_workers})
    pinning: list[Changes] = [{}, {"pin_memory": False}] if baseline.pin_memory else [{}]
    if serves_pinning(accelerator):
        pinning = [
            {"pin_memory": False},
            {"pin_memory": True, "non_blocking": False},
            {"pin_memory": True, "non_blocking": True},
        ]
    combinations: Iterable[Changes] = (
        {**pinned, "num_workers": count, "prefetch_factor": prefetch}
        for count in workers
        for pinned in pinning
        for prefetch in (DEFAULT_PREFETCH, 2 * DEFAULT_PREFETCH)
    )
    return _distinct(combinations, baseline)


def most_telling(baseline: Configuration, usable_cpus: int, accelerator: str | None) -> list[Treatment]:
    """What a search begins with: whatever the script's own workers do with pinned memory, then other workers.

    A queue shorter than torch's own is tried longer at once: with that little in stock, each slow batch is waited for.
    """
    half = max(usable_cpus // 2, 1)
    counts = [count for count in (0, half, 2 * half) if count != baseline.num_workers]
    short = baseline.num_workers > 0 and (baseline.prefetch_factor or DEFAULT_PREFETCH) < DEFAULT_PREFETCH
    longer: list[Changes] = [{"prefetch_factor": 2 * DEFAULT_PREFETCH}] if short else []
    if serves_pinning(accelerator):
        pinned: Changes = {"pin_memory": True, "non_blocking": True}
        first: list[Changes] = [{"pin_memory": False}, pinned, {**pinned, "num_workers": counts[0]}, *longer]
        if baseline.non_blocking is not True:
            first.insert(1, {"pin_memory": True, "non_blocking": False})
        return _distinct(first, baseline)
    unpinned: list[Changes] = [{"pin_memory": False}] if baseline.pin_memory else []
    return _distinct([*unpinned, *longer, *({"num_workers": count} for count in counts[:2])], baseline)


def _with_accelerator(baseline: Configuration, cpus: int) -> list[Changes]:
    pinned: Changes = {"pin_memory": True, "non_blocking": True}
    half = max(cpus // 2, 1)
    return [
        {"pin_memory": False},
        {"pin_memory": True, "non_blocking": False},
        pinned,
        {"pin_memory": not baseline.pin_memory},
        {**pinned, "num_workers": 0},
        {**pinned, "num_workers": half},
        {"num_workers": half},
        {"num_workers": 0},
        {**pinned, "num_workers": cpus},
        {**pinned, "num_workers": 2},
        {"num_workers": cpus},
        {"prefetch_factor": 4},
        {**pinned, "num_workers": 1},
        {"num_workers": 1},
        {"num_workers": 2},
        {"num_workers": half, "pin_memory": not baseline.pin_memory},
        {"num_workers": 2, "prefetch_factor": 4},
        {"num_workers": 1, "prefetch_factor": 4},
        {"num_workers": 0, "pin_memory": not baseline.pin_memory},
    ]


def _without_accelerator(baseline: Configuration, cpus: int) -> list[Changes]:
    counts = [cpus, 0, cpus // 2, 2, 1, 4]
    some = [count for count in dict.fromkeys(counts) if count > 0]
    guesses: list[Changes] = [{"num_workers": count} for count in counts]
    if baseline.pin_memory:
        guesses.insert(0, {"pin_memory": False})
    if baseline.num_workers > 0:
        guesses += [{"prefetch_factor": 4}, {"persistent_workers": True}]
    for count in some:
        guesses += [
            {"num_workers": count, "prefetch_factor": 4},
            {"num_workers": count, "persistent_workers": True},
        ]
    return guesses


def _distinct(changes: Iterable[Changes], baseline: Configuration) -> list[Treatment]:
    found = {made.id: made for made in (treatment(baseline, change) for change in changes) if made.changes}
    found.pop(treatment_id(baseline), None)
    return list(found.values())
