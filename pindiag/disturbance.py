"""What disturbed a block, from what was seen beside the target while it counted.

Asked by plan while the run goes on, to give a disturbed block another turn, and by analysis afterwards, to leave it out
or to mark it. Both look at the same records. Only causes from outside count: what a treatment does to itself, such as
workers that queue for CPUs because there are too many of them, is what is being measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Literal, NamedTuple

from pindiag.model import BlockLoad

Kind = Literal["gpu", "heat", "clock", "quota", "host", "others"]

FOREIGN_SHARE = 0.15
"""Of the CPUs that the target may run on, used by others. A block on a quiet machine sees 0.01 to 0.05 (kernel threads,
services), and a target that wants all CPUs loses about this share of its throughput, more than blocks usually differ.
"""

QUEUED_SHARE = 0.05
"""Of the CPU time that the target wanted, spent waiting for a CPU: below, others have taken nothing from it, however
busy they are (idle CPUs, low priority). A quiet machine shows 0.01 at most while no more runs than there are CPUs.
"""

CROWDED_SHARE = 0.9
"""Of the CPUs in use by all together: stands in for the queue where the kernel does not tell it."""

STOLEN_SHARE = 0.05
"""Of the target's CPU time, taken by the host of a virtual machine: time in which the target was ready to run."""

THROTTLED_SHARE = 0.1
"""Of the time, held back by a CPU quota."""

OWN_QUOTA_SHARE = 0.8
"""A target that uses so much of the quota throttles itself; where it uses less, others of its control group do."""

SLOWED_SHARE = 0.25
"""Of the samples, with the GPU's clocks held down from outside; of the time, with the CPUs' held down by heat. A single
sample of a few is no state."""

SLOW_CLOCK_SHARE = 0.8
"""Of the median clock of the treatment's other blocks. A treatment keeps as many CPUs busy in each of its blocks, and a
CPU's turbo then differs by some per cent with its temperature; what costs a fifth is held down, by heat, a limit of
power or a battery, whether or not the kernel says so."""

FEWEST_CLOCKS = 3
"""Blocks of a treatment that one is held against: with fewer, two slow ones would make the usual one look fast."""

BUSY_CPUS = 0.9
"""CPUs' worth that the target used at least: CPUs that idle clock themselves down, which holds nobody back."""

USUAL_SHARE = 1 / 3
"""Where more of a launch's blocks are disturbed, the load is part of the machine: what is repeated would meet it again,
and rounds without it would tell of a machine that the user does not have."""


class Disturbance(NamedTuple):
    """What disturbed a block."""

    kind: Kind
    words: str
    """With its figures."""


def disturbances(loads: Sequence[BlockLoad]) -> dict[int, Disturbance]:
    """What disturbed which of a launch's blocks, by what was seen beside each and by how it differs from the others."""
    clocks: dict[str, dict[int, float]] = defaultdict(dict)
    for load in loads:
        if load.cpu_clock_mhz is not None and load.target_cpus is not None and load.target_cpus >= BUSY_CPUS:
            clocks[load.trial][load.block] = load.cpu_clock_mhz
    found = {}
    for load in loads:
        what = disturbance(load) or _clocked_down(load.block, clocks[load.trial])
        if what is not None:
            found[load.block] = what
    return found


def disturbance(load: BlockLoad) -> Disturbance | None:
    """What disturbed a block; None where nothing did, or nothing can be said."""
    return _slowed(load) or _heated(load) or _throttled(load) or _stolen(load) or _crowded(load)


def is_usual(disturbed: int, blocks: int) -> bool:
    """Whether so many disturbed blocks among all are what this machine is like."""
    return disturbed > USUAL_SHARE * blocks


def _slowed(load: BlockLoad) -> Disturbance | None:
    if load.gpu_slowed_share is None or load.gpu_slowed_share < SLOWED_SHARE:
        return None
    clock = "" if load.gpu_sm_clock_mhz is None else f", at {load.gpu_sm_clock_mhz:.0f} MHz on average"
    held = f"heat or power held the GPU's clocks down in {100 * load.gpu_slowed_share:.0f} % of its samples"
    return Disturbance("gpu", held + clock)


def _heated(load: BlockLoad) -> Disturbance | None:
    share = load.cpu_slowed_share
    if share is None or share < SLOWED_SHARE:
        return None
    return Disturbance("heat", f"heat held the CPUs' clocks down {100 * share:.0f} % of the time")


def _clocked_down(block: int, clocks_mhz: Mapping[int, float]) -> Disturbance | None:
    """By the clocks of a treatment's blocks."""
    own, usual = clocks_mhz.get(block), [mhz for other, mhz in clocks_mhz.items() if other != block]
    if own is None or len(usual) < FEWEST_CLOCKS or own >= SLOW_CLOCK_SHARE * median(usual):
        return None
    return Disturbance(
        "clock",
        f"the CPUs were clocked at {own:.0f} MHz, in the other blocks of this treatment at {median(usual):.0f} MHz",
    )


def _throttled(load: BlockLoad) -> Disturbance | None:
    share, quota, own = load.throttled_share, load.quota_cpus, load.target_cpus
    if share is None or quota is None or own is None or share < THROTTLED_SHARE or own >= OWN_QUOTA_SHARE * quota:
        return None
    return Disturbance(
        "quota",
        f"the quota of {quota:g} CPUs, of which the target used {own:.1f}, held its control group back "
        f"{100 * share:.0f} % of the time",
    )


def _stolen(load: BlockLoad) -> Disturbance | None:
    stolen, own = load.stolen_cpus, load.target_cpus
    if stolen is None or own is None or stolen < STOLEN_SHARE * max(own, 1.0):
        return None
    return Disturbance("host", f"the host of this virtual machine took {stolen:.1f} CPUs away")


def _crowded(load: BlockLoad) -> Disturbance | None:
    cpus, foreign, own = load.cpus, load.foreign_cpus, load.target_cpus
    if cpus is None or foreign is None or own is None or foreign < FOREIGN_SHARE * cpus:
        return None
    used = f"other processes and the kernel used {foreign:.1f} of {cpus} CPUs"
    if load.queued_share is None:
        return Disturbance("others", used) if foreign + own >= CROWDED_SHARE * cpus else None
    if load.queued_share < QUEUED_SHARE:
        return None
    queued = f"the target queued {100 * load.queued_share:.0f} % of the time in which it wanted a CPU"
    return Disturbance("others", f"{used}; {queued}")
