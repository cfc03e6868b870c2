"""Who leads: what the rounds say about each configuration against the script as written.

Asked by plan while the run goes on, to know what to verify, and by analysis afterwards, to recommend it. Both look at
the same rounds, and never at the verification, so they name the same one.
"""

from __future__ import annotations

from pindiag.journal import Journal
from pindiag.model import Treatment
from pindiag.stats import Mean, Rate, compare, geometric_mean, noise_floor, paired_ratios

AS_GOOD_AS_THE_BEST = 1.02
"""Within this ratio of the best, the cheaper one is recommended."""


def race_rates(journal: Journal) -> list[Rate]:
    """Throughput of all blocks of the rounds; the first launch is the baseline's first block of round 1."""
    return journal.rates("discover", "round")


def standings(journal: Journal) -> dict[str, Mean]:
    """Ratio to the baseline of every configuration that ran, paired within rounds."""
    if journal.baseline_id is None:
        return {}
    known = [rate for rate in race_rates(journal) if rate.trial in journal.treatments]
    return compare(known, journal.baseline_id)


def floor(journal: Journal) -> tuple[float | None, int]:
    """The noise floor as a ratio, and how many rounds it rests on."""
    return (None, 0) if journal.baseline_id is None else noise_floor(race_rates(journal), journal.baseline_id)


def beyond_noise(ratio: Mean, noise: float | None) -> bool:
    """Whether a gain's interval excludes 1 and the gain exceeds the noise floor."""
    return ratio.ci95 is not None and ratio.ci95[0] > 1 and ratio.value > (noise or 1)


def chosen(journal: Journal) -> str | None:
    """The cheapest configuration within 2 % of the best; the baseline where no gain is beyond the noise.

    None where nothing is known of the baseline. Batch size changes training itself, so treatments that change it are
    never chosen.
    """
    baseline = journal.baseline_id
    noise, _ = floor(journal)
    gains = {
        trial: ratio.value
        for trial, ratio in standings(journal).items()
        if beyond_noise(ratio, noise) and "batch_size" not in journal.treatments[trial].changes
    }
    if baseline is None or max(gains.values(), default=1.0) <= AS_GOOD_AS_THE_BEST:
        return baseline
    near = [trial for trial, gain in gains.items() if gain * AS_GOOD_AS_THE_BEST >= max(gains.values())]
    return min(near, key=lambda trial: (*cost(journal.treatments[trial]), -gains[trial]))


def cost(treatment: Treatment) -> tuple[int, int, bool]:
    """What a configuration takes of the machine, to be compared: processes, batches in flight, pinned memory.

    Memory and start-up grow with them, and unlike measured bytes they are the same in every round.
    """
    configuration = treatment.configuration
    in_flight = configuration.num_workers * (configuration.prefetch_factor or 1)
    return configuration.num_workers, in_flight, configuration.pin_memory


def verification(journal: Journal, candidate: str) -> Mean | None:
    """Ratio of the candidate over the baseline in the pairs of launches that did not choose it."""
    if journal.baseline_id is None:
        return None
    ratios = paired_ratios(journal.rates("verify"), journal.baseline_id).get(candidate)
    return geometric_mean(ratios) if ratios else None
