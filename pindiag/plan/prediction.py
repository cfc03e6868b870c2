"""What a configuration can reach at most, from the ceilings of its kind."""

from __future__ import annotations

from pindiag.model import Treatment
from pindiag.plan.known import Known
from pindiag.plan.threads import Threads
from pindiag.plan.treatments import baseline_treatment, host_batch, loader_only
from pindiag.race import beside, race_rates, standings
from pindiag.stats import Mean, geometric_mean

CLEARLY = 1.25
"""How far apart two ratios without intervals must be."""


class Prediction:
    """Which configurations cannot win, as far as the ceilings are known."""

    def __init__(self, known: Known, threads: Threads) -> None:
        self._known = known
        self._threads = threads
        self._ceilings = beside(known.journal)
        self._to_beat = max([1.0, *(_lower(ratio) for ratio in standings(known.journal).values())])
        rates = [rate.value for rate in race_rates(known.journal) if rate.trial == known.baseline]
        self._baseline_rate = geometric_mean(rates).value if rates else 0.0

    def cannot_win(self, made: Treatment) -> float | None:
        """Samples/s that a configuration reaches at most, where that is clearly less than the leader has; else None."""
        most = self._most(made)
        return None if most is None or most >= self._to_beat else most * self._baseline_rate

    def _most(self, made: Treatment) -> float | None:
        """Its ratio to the baseline at most: with free batches, or with a free step."""
        baseline = self._known.journal.baseline
        if baseline is None or not self._threads.same(made, baseline_treatment(baseline)):
            return None
        wanted = made.configuration
        same = [host_batch(baseline, pin_memory=wanted.pin_memory, non_blocking=wanted.non_blocking is True)]
        if wanted.num_workers == baseline.num_workers:
            same.append(loader_only(baseline, pin_memory=wanted.pin_memory))
        known = [self._ceilings[ceiling.id] for ceiling in same if ceiling.id in self._ceilings]
        return min((_upper(ratio) for ratio in known), default=None)


def _lower(ratio: Mean) -> float:
    return ratio.value / CLEARLY if ratio.ci95 is None else ratio.ci95[0]


def _upper(ratio: Mean) -> float:
    return ratio.value * CLEARLY if ratio.ci95 is None else ratio.ci95[1]
