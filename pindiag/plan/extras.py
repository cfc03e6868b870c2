"""Which ablations and tweaks a run needs beside its configurations."""

from __future__ import annotations

from pindiag.model import LoaderChosen, Treatment
from pindiag.plan.known import Known
from pindiag.plan.threads import Threads
from pindiag.plan.treatments import (
    baseline_treatment,
    has_pin_thread,
    host_batch,
    loader_only,
    serves_pinning,
    with_intraop_threads,
    with_lazy_sync,
)
from pindiag.race import standings

CALLS_A_STEP = 1.0
"""Fewer synchronising calls than this cannot hold up every step."""


def ablations(found: LoaderChosen) -> list[Treatment]:
    """`host_batch` and `loader_only`; `compute_only` has rounds of its own.

    Without an accelerator a host batch needs no transfer, so it says no more than `compute_only` does. What says most
    comes first.
    """
    baseline = found.configuration
    pins = serves_pinning(found.accelerator)
    copies = [(False, baseline.non_blocking is True)] if transfers(found) else []
    if copies and pins:
        copies = [(True, True), *copies, (True, False)]
    loaders = [False, True] if pins else [False]
    return [
        *(loader_only(baseline, pin_memory=pinned) for pinned in loaders),
        *(host_batch(baseline, pin_memory=pinned, non_blocking=wait_free) for pinned, wait_free in copies),
    ]


def transfers(found: LoaderChosen) -> bool:
    """Whether the script moves its batches to an accelerator."""
    return found.accelerator not in (None, "cpu") and found.device is not None and found.device != "cpu"


def tweaks(known: Known, threads: Threads) -> list[Treatment]:
    """`intraop_threads` where a pin thread takes threads away, `lazy_sync` where every step waits for the device."""
    found = known.journal.chosen
    if found is None:
        return []
    made = []
    pinned = _pinned(known, found)
    if threads.given_back is not None and pinned is not None:
        made.append(with_intraop_threads(pinned, threads.given_back))
    if transfers(found) and _syncs_per_step(known) >= CALLS_A_STEP:
        made.append(with_lazy_sync(baseline_treatment(found.configuration)))
    return made


def _pinned(known: Known, found: LoaderChosen) -> Treatment | None:
    """The baseline where it has a pin thread, else the best treatment that has one, once there is any."""
    treatments = known.journal.treatments
    tried = (made.id.partition("+")[0] for made in treatments.values() if made.tweak == "intraop_threads")
    earlier = next(tried, None)
    if earlier is not None:
        return treatments[earlier]
    if has_pin_thread(found.configuration, found.accelerator):
        return baseline_treatment(found.configuration)
    ratios = standings(known.journal)
    pinned = [name for name in ratios if has_pin_thread(treatments[name].configuration, found.accelerator)]
    best = max(pinned, key=lambda name: ratios[name].value, default=None)
    return None if best is None else treatments[best]


def _syncs_per_step(known: Known) -> float:
    """Of the script as written, in its latest block."""
    own = [
        block
        for launch in known.journal.launches
        for block in launch.counted
        if known.journal.trial(block.trial) == known.baseline
    ]
    return sum(site.calls for site in own[-1].syncs) / own[-1].steps if own else 0.0
