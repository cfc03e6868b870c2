"""Who leads: what the rounds say about each configuration and tweak against the script as written.

Asked by plan while the run goes on, to know what to verify, and by analysis afterwards, to recommend it. Both look at
the same rounds, and never at the verification, so they name the same one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from pindiag.gate import unsafe
from pindiag.journal import Journal, Launch
from pindiag.model import MemoryBytes, Treatment
from pindiag.stats import Mean, Rate, compare, geometric_mean, noise_floor, paired_ratios, trend

AS_GOOD_AS_THE_BEST = 1.02
"""Within this ratio of the best, the cheaper one is recommended."""

AS_CHEAP = 1.25
"""Readings of memory and start-up within this ratio count as equal: a queue is fuller or emptier when it is read."""

FEWEST_FOR_DRIFT = 6
"""Baseline blocks of a live launch below which a drift cannot be told from noise."""

DRIFT = 1.1
"""What the baseline may change from one round to the next. Ratios within rounds cancel a slow drift, as of a model that
becomes slow to compute with, and random order makes noise of the rest; not so of what comes faster."""

DRIFT_IN_ALL = 1.5
"""What it may change over a launch, however slowly: beyond that the process is no longer the user's."""

BY_CHANCE = 0.01

Answer = TypeVar("Answer")


def once(question: Callable[[Journal], Answer]) -> Callable[[Journal], Answer]:
    """Answer a question about a journal one time; nobody changes the answer.

    Plan asks the same for every candidate, while the records of a journal stay what they are.
    """
    answers: WeakKeyDictionary[Journal, Answer] = WeakKeyDictionary()

    @wraps(question)
    def answered(journal: Journal) -> Answer:
        if journal not in answers:
            answers[journal] = question(journal)
        return answers[journal]

    return answered


@once
def race_rates(journal: Journal) -> list[Rate]:
    """Throughput of all blocks of the rounds.

    A round is live or fresh as a whole. What ran in fresh rounds too is judged by these alone; the baseline, which
    every round is compared with, keeps both.
    """
    fresh = journal.rates("discover", "round", isolation="fresh")
    settled = {rate.trial for rate in fresh} - {journal.baseline_id}
    live = journal.rates("discover", "round", isolation="live")
    return [rate for rate in live if rate.trial not in settled] + fresh


@once
def standings(journal: Journal) -> dict[str, Mean]:
    """Ratio to the baseline of every configuration that competes, paired within rounds; p corrected over all of them.

    Another batch size changes training itself, so it is none of them.
    """
    names = [name for name, made in journal.treatments.items() if made.competes]
    return _compared(journal, race_rates(journal), names)


@once
def beside(journal: Journal) -> dict[str, Mean]:
    """Ratio to the baseline of every ablation, tweak and other batch size, paired within rounds.

    Each answers a question of its own, so nothing is corrected: they do not compete.
    """
    rates = race_rates(journal)
    others = [name for name, made in journal.treatments.items() if not made.competes]
    return {name: mean for other in others for name, mean in _compared(journal, rates, [other]).items()}


def _compared(journal: Journal, rates: Collection[Rate], names: Collection[str]) -> dict[str, Mean]:
    if journal.baseline_id is None:
        return {}
    known = {*names, journal.baseline_id}
    return compare([rate for rate in rates if rate.trial in known], journal.baseline_id)


def live_ratio(journal: Journal, trial: str) -> Mean | None:
    """Ratio to the baseline in the live rounds alone, whatever fresh ones say."""
    if journal.baseline_id is None:
        return None
    ratios = paired_ratios(journal.rates("discover", "round", isolation="live"), journal.baseline_id).get(trial)
    return geometric_mean(ratios) if ratios else None


@once
def drifts(journal: Journal) -> bool:
    """Whether the baseline's live blocks change over a launch by more than chance and noise.

    Then the process is not what it was, and fresh launches decide.
    """
    return any(_drifts(journal, launch) for launch in journal.launches if launch.isolation == "live")


def _drifts(journal: Journal, launch: Launch) -> bool:
    own = [block for block in launch.counted if journal.trial(block.trial) == journal.baseline_id]
    if len(own) < FEWEST_FOR_DRIFT:
        return False
    slope = trend([math.log(block.samples / block.seconds) for block in own])
    steps = len({block.round for block in own}) - 1
    most = min(steps * math.log(DRIFT), math.log(DRIFT_IN_ALL))
    return slope.p < BY_CHANCE and abs(slope.total) > most


@once
def floor(journal: Journal) -> tuple[float | None, int]:
    """The noise floor as a ratio, and how many rounds it rests on."""
    return (None, 0) if journal.baseline_id is None else noise_floor(race_rates(journal), journal.baseline_id)


def beyond_noise(ratio: Mean, noise: float | None) -> bool:
    """Whether a gain's interval excludes 1 and the gain exceeds the noise floor."""
    return ratio.ci95 is not None and ratio.ci95[0] > 1 and ratio.value > (noise or 1)


@once
def near_best(journal: Journal) -> dict[str, float]:
    """Gains within 2 % of the best, of configurations that are faster by more than the noise and not known as unsafe.

    Empty where none is, or where the best brings less than 2 %: that is not worth a change.
    """
    noise, _ = floor(journal)
    gains = {
        trial: ratio.value
        for trial, ratio in standings(journal).items()
        if beyond_noise(ratio, noise) and unsafe(journal, trial) is None
    }
    best = max(gains.values(), default=1.0)
    if best <= AS_GOOD_AS_THE_BEST:
        return {}
    return {trial: gain for trial, gain in gains.items() if gain * AS_GOOD_AS_THE_BEST >= best}


@once
def chosen(journal: Journal) -> str | None:
    """The cheapest configuration within 2 % of the best; the baseline where no gain is beyond the noise.

    None where nothing is known of the baseline.
    """
    if journal.baseline_id is None:
        return None
    near = near_best(journal)
    return cheapest({trial: measured_cost(journal, trial, gain) for trial, gain in near.items()}) or journal.baseline_id


@once
def leader(journal: Journal) -> str | None:
    """What comes first, and is verified: the chosen configuration, or a tweak that gains clearly more.

    A tweak stands for a line of the user's code. Its gain is clearly more where its interval lies above that of the
    configuration; where they overlap, arguments come before code. A tweak that changes arguments as well has to gain
    clearly more than either alone.
    """
    best = chosen(journal)
    if best is None:
        return None
    gains = {trial: ratio.value for trial, ratio in beside(journal).items() if _gains_more(journal, trial, ratio, best)}
    return max(gains, key=lambda trial: gains[trial], default=best)


def _gains_more(journal: Journal, trial: str, ratio: Mean, best: str) -> bool:
    made = journal.treatments[trial]
    if made.kind != "tweak" or ratio.ci95 is None or not beyond_noise(ratio, floor(journal)[0]):
        return False
    alone = [mean.ci95[1] if mean.ci95 else mean.value for mean in _parts(journal, made)]
    least = max([_interval(journal, best)[1], *alone])
    safe = unsafe(journal, made.configuration.id) is None
    return safe and ratio.ci95[0] > least and ratio.value > AS_GOOD_AS_THE_BEST


def _parts(journal: Journal, made: Treatment) -> list[Mean]:
    """What the arguments and the line of code of a tweak gain alone, where each was tried."""
    alone = {made.configuration.id, f"{journal.baseline_id}+{made.tweak}"} - {made.id}
    ratios = standings(journal) | beside(journal)
    return [ratios[name] for name in alone if name in ratios]


def _interval(journal: Journal, trial: str) -> tuple[float, float]:
    """Of a chosen configuration's gain in the race; that of the baseline is none."""
    ratio = standings(journal).get(trial)
    return (1.0, 1.0) if ratio is None or ratio.ci95 is None else ratio.ci95


class Cost(NamedTuple):
    """What a configuration takes of the machine; None: not measured."""

    workers: int
    pinned_and_shared_bytes: int | None
    in_flight: int
    """Batches that its queue holds when the workers are ahead."""
    pins: bool
    startup_s: float | None
    gain: float


def cost(treatment: Treatment) -> tuple[int, int, bool]:
    """What a configuration takes by its arguments alone: workers, batches that its full queue holds, pinned memory."""
    configuration = treatment.configuration
    in_flight = configuration.num_workers * (configuration.prefetch_factor or 1)
    return configuration.num_workers, in_flight, configuration.pin_memory


def measured_cost(journal: Journal, trial: str, gain: float) -> Cost:
    """What a configuration took in the race; where fresh launches judge it, in these alone."""
    turns = [launch for launch in journal.launches if launch.purpose in ("discover", "round")]
    ran = [launch for launch in turns if any(journal.trial(block.trial) == trial for block in launch.counted)]
    ran = [launch for launch in ran if launch.isolation == "fresh"] or ran
    workers, in_flight, pins = cost(journal.treatments[trial])
    held = MemoryBytes(
        pss=None, pinned=journal.pinned_bytes(ran, trial), shm=journal.read_bytes(ran, trial, "shm_bytes")
    )
    return Cost(
        workers=workers,
        pinned_and_shared_bytes=held.pinned_and_shared,
        in_flight=in_flight,
        pins=pins,
        startup_s=journal.startup_s(ran, trial),
        gain=gain,
    )


_CRITERIA: tuple[tuple[Callable[[Cost], float | None], float], ...] = (
    (lambda taken: taken.workers, 1.0),
    (lambda taken: taken.pinned_and_shared_bytes, AS_CHEAP),
    (lambda taken: taken.in_flight, 1.0),
    (lambda taken: taken.pins, 1.0),
    (lambda taken: taken.startup_s, AS_CHEAP),
    (lambda taken: -taken.gain, 1.0),
)
"""What is compared, in this order, and the ratio within which two values count as equal."""


def cheapest(costs: Mapping[str, Cost]) -> str | None:
    """The name whose cost is the least; None where there is none.

    One criterion after the other leaves only those that are as good as the best in it. Workers come first: each is a
    process with its own copy of what the dataset touches, on a CPU that others could use, and most that goes wrong
    with loaders goes wrong in them. Then pinned and shared memory, which the system cannot swap out and containers
    limit (/dev/shm); a reading that one of them lacks decides nothing. Batches in flight and pinning say how much of
    that memory the configuration may come to take, where readings leave it open. Start-up comes last: it is paid
    once an epoch. What is equal in all of these is decided by throughput.
    """
    left = list(costs)
    for value, equal in _CRITERIA:
        values = {name: value(costs[name]) for name in left}
        known = [one for one in values.values() if one is not None]
        if len(known) == len(left) > 1:
            least = min(known)
            left = [name for name in left if (values[name] or 0.0) <= max(least, least * equal)]
    return next(iter(left), None)


def verification(journal: Journal, candidate: str, *, steady: bool = False) -> Mean | None:
    """Ratio of the candidate over the baseline in the pairs of launches that did not choose it.

    Args:
        journal: the run.
        candidate: what was verified.
        steady: over what a block of steps counts, where whole epochs were covered.
    """
    if journal.baseline_id is None:
        return None
    ratios = paired_ratios(journal.verify_rates(steady=steady), journal.baseline_id).get(candidate)
    return geometric_mean(ratios) if ratios else None


def recommended(journal: Journal) -> str | None:
    """What is chosen, unless its verification does not bear it out: then the script as written.

    That may be shown to be faster with workers that live on, which no block of the race tells.
    """
    best = chosen(journal)
    ratio = None if best in (None, journal.baseline_id) else verification(journal, best or "")
    kept = journal.baseline_id if ratio is not None and _not_borne_out(ratio) else best
    return (_living_on(journal) or kept) if kept == journal.baseline_id else kept


def _living_on(journal: Journal) -> str | None:
    """The script as written with workers that live on, where pairs over whole epochs bear out that it is faster."""
    alone = (made.id for made in journal.treatments.values() if made.changes == {"persistent_workers": True})
    name = next(alone, "")
    ratio = verification(journal, name)
    if ratio is None or journal.verified_epochs is None or unsafe(journal, name) is not None:
        return None
    return name if beyond_noise(ratio, floor(journal)[0]) else None


def comes_first(journal: Journal) -> str | None:
    """The leader; where it is a tweak whose verification does not bear that out, the recommended configuration."""
    ahead, best = leader(journal), chosen(journal)
    if ahead is None or best is None or ahead == best:
        return recommended(journal)
    ratio = verification(journal, ahead)
    behind = ratio is not None and ratio.ci95 is not None and ratio.ci95[1] < _interval(journal, best)[0]
    return recommended(journal) if behind or (ratio is not None and _not_borne_out(ratio)) else ahead


def claimed(journal: Journal) -> str | None:
    """A change that comes first and that its verification bears out."""
    ahead = comes_first(journal)
    ratio = None if ahead in (None, journal.baseline_id) else verification(journal, ahead or "")
    return ahead if ratio is not None and ratio.ci95 is not None else None


def _not_borne_out(ratio: Mean) -> bool:
    """Whether no gain was shown; by so few pairs that there is no interval, whether they saw none."""
    return (ratio.value if ratio.ci95 is None else ratio.ci95[0]) <= 1
