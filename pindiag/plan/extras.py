"""Which ablations and tweaks a run needs beside its configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pindiag.model import OF_WORKERS, BlockLoad, LoaderChosen, Treatment, Tweak
from pindiag.plan.known import Known
from pindiag.plan.prediction import CLEARLY
from pindiag.plan.threads import Threads
from pindiag.plan.treatments import (
    baseline_treatment,
    has_pin_thread,
    host_batch,
    loader_only,
    serves_pinning,
    under,
    with_fewer_intraop_threads,
    with_intraop_threads,
    with_lazy_sync,
    with_worker_affinity,
    with_worker_threads,
)
from pindiag.race import AS_GOOD_AS_THE_BEST, beside, beyond_noise, chosen, floor, standings
from pindiag.stats import Mean

CALLS_A_STEP = 1.0
"""Fewer synchronising calls than this cannot hold up every step."""

PLAIN_THREADS = 3
"""Of a worker: it fetches, hands over, and gives out the descriptors of shared memory. More are of native libraries."""

ROUNDS_TO_SUSPECT = 2
"""Rounds after which a clear gain is taken for one, so that what is tried beside it has three of its own in time."""

QUEUED_SHARE = 0.05
"""Of the CPU time that the target wanted, spent waiting for a CPU: below, its threads do not take CPUs from each other.
"""


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
    """What each may bring alone, then what is tried beside the configuration that leads."""
    found = known.journal.chosen
    if found is None:
        return []
    alone = _alone(known, threads, found)
    return [*alone, *_together(known, found, alone)]


def _alone(known: Known, threads: Threads, found: LoaderChosen) -> list[Treatment]:
    """`intraop_threads` where a pin thread takes threads away, `lazy_sync` where every step waits for the device.

    What concerns the CPUs of workers is tried on the script as written, going by what the sampler saw beside it.
    """
    made = []
    pinned = _pinned(known, found)
    if threads.given_back is not None and pinned is not None:
        made.append(with_intraop_threads(pinned, threads.given_back))
    if transfers(found) and _syncs_per_step(known) >= CALLS_A_STEP:
        made.append(with_lazy_sync(baseline_treatment(found.configuration)))
    return made + _on_cpus(known, found)


def _together(known: Known, found: LoaderChosen, alone: Sequence[Treatment]) -> list[Treatment]:
    """The tweak of the script as written that gains most, and `lazy_sync`, with the configuration that leads.

    Only what each mend gives alone, and both together, tells two causes apart. What waits for the device need not gain
    alone: it may cost nothing until the loader keeps up. What was tried with one configuration is tried with no other.
    """
    own, gaining = found.configuration, _gaining(known)
    tried = {
        made.tweak: made
        for made in known.journal.treatments.values()
        if made.kind == "tweak" and made.configuration != own
    }
    of_own = [made for made in alone if made.configuration == own]
    gainers = [made for made in of_own if made.id in gaining]
    most = max(gainers, key=lambda made: (made.tweak in tried, gaining[made.id]), default=None)
    asked = [made for made in of_own if made is most or made.tweak == "lazy_sync"]
    best = _leading(known, gaining)
    both = {made.tweak: under(made, best) for made in asked if best and _applies(made.tweak, best, found.accelerator)}
    return [made for tweak, made in (both | tried).items() if tweak in {one.tweak for one in asked}]


def _gaining(known: Known) -> dict[str, float]:
    """Gains that are worth a change: beyond the noise, or clear in two rounds, which give no interval yet."""
    noise, _ = floor(known.journal)
    ratios = standings(known.journal) | beside(known.journal)
    return {name: ratio.value for name, ratio in ratios.items() if _gains(ratio, noise)}


def _gains(ratio: Mean, noise: float | None) -> bool:
    early = ratio.ci95 is None and ratio.count >= ROUNDS_TO_SUSPECT
    least = max(CLEARLY if early else AS_GOOD_AS_THE_BEST, noise or 1.0)
    return ratio.value > least and (early or beyond_noise(ratio, noise))


def _leading(known: Known, gaining: Mapping[str, float]) -> Treatment | None:
    """The configuration that would be recommended, else the fastest; none that cannot be swapped live."""
    treatments, best = known.journal.treatments, chosen(known.journal)
    live = [name for name in gaining if treatments[name].competes and not known.runs_fresh(treatments[name])]
    ahead = max(live, key=lambda name: (name == best, gaining[name]), default=None)
    return None if ahead is None else treatments[ahead]


def _applies(tweak: Tweak | None, made: Treatment, accelerator: str | None) -> bool:
    """Whether a configuration has what a tweak changes."""
    if tweak == "intraop_threads":
        return has_pin_thread(made.configuration, accelerator)
    return made.configuration.num_workers > 0 or tweak not in OF_WORKERS


def _on_cpus(known: Known, found: LoaderChosen) -> list[Treatment]:
    """Tweaks of the script as written where its workers queue for CPUs, or are bound to few of them."""
    load, own = _load(known), baseline_treatment(found.configuration)
    if load is None or load.cpus is None or found.configuration.num_workers == 0:
        return []
    made = []
    queues = load.queued_share is None or load.queued_share >= QUEUED_SHARE
    if queues and (load.worker_threads or 0) > PLAIN_THREADS:
        made.append(with_worker_threads(own))
    if queues and found.accelerator is None and (found.intraop_threads or 1) > 1:
        made.append(with_fewer_intraop_threads(own, (found.intraop_threads or 1) // 2))
    bound = load.worker_allowed_cpus
    if bound is not None and bound < min(load.cpus, found.configuration.num_workers):
        made.append(with_worker_affinity(own))
    return made


def _load(known: Known) -> BlockLoad | None:
    """What was seen beside the first block of the script as written."""
    loads = (load for launch in known.journal.launches for load in launch.all(BlockLoad))
    return next((load for load in loads if known.journal.trial(load.trial) == known.baseline), None)


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
