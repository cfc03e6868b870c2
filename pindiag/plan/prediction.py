"""What a configuration can reach at most: the lowest of the ceilings, stage times and neighbours that bound it.

All is reckoned as a ratio to the script as written, or as its inverse: the time of a step where the script's own is 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from pindiag.model import Treatment
from pindiag.plan.known import Known
from pindiag.plan.stage_times import StageTimes
from pindiag.plan.threads import Threads
from pindiag.plan.treatments import (
    COMPUTE_ONLY,
    DEFAULT_PREFETCH,
    baseline_treatment,
    has_pin_thread,
    host_batch,
    loader_only,
)
from pindiag.race import beside, race_rates, standings
from pindiag.stats import Mean, geometric_mean

CLEARLY = 1.1
"""How far apart two ratios are where one has no interval yet; blocks of a second seldom differ by more by chance."""
LATENCY_BOUND = 0.6
"""Share of its time that making a batch spends on a CPU, below which workers beyond the CPUs may pay."""


class Bound(NamedTuple):
    """What a configuration reaches at most."""

    ratio: float
    """To the script as written."""
    because: str


class Prediction:
    """Bounds of configurations, from all that was measured so far."""

    def __init__(self, known: Known, threads: Threads) -> None:
        self._known = known
        self._threads = threads
        self._ratios = {**standings(known.journal), **beside(known.journal)}
        self._ratios[known.baseline] = Mean(1.0, (1.0, 1.0), 0, None)
        self._times = StageTimes(known, {name: mean.value for name, mean in self._ratios.items()})

    @cached_property
    def best(self) -> Treatment | None:
        """The fastest configuration so far, the script as written among them."""
        return max(self.measured, key=lambda each: each[1], default=(None, 0.0))[0]

    @property
    def leader(self) -> Mean:
        """Its ratio."""
        return self._ratios[self._known.baseline if self.best is None else self.best.id]

    @cached_property
    def baseline_rate(self) -> float:
        """Samples/s of the script as written."""
        rates = [rate.value for rate in race_rates(self._known.journal) if rate.trial == self._known.baseline]
        return geometric_mean(rates).value if rates else 0.0

    def most(self, made: Treatment) -> Bound | None:
        """The lowest bound of a configuration; None where nothing bounds it."""
        return min(self._bounds(made), default=None)

    def cannot_win(self, made: Treatment) -> Bound | None:
        """Its lowest bound where that is clearly below the leader; else None."""
        most = self.most(made)
        doubt = CLEARLY if self.leader.ci95 is None else 1.0
        return None if most is None or most.ratio * doubt >= self.to_beat else most

    @cached_property
    def to_beat(self) -> float:
        """The leader's ratio; no more than its own bound, which a disturbed block may have let it exceed."""
        most = None if self.best is None else self.most(self.best)
        return self.leader.value if most is None else min(self.leader.value, most.ratio)

    def _bounds(self, made: Treatment) -> Iterator[Bound]:
        step = min(self._step(made), default=None)
        if step is not None:
            yield step
        if made.configuration.num_workers == 0:
            yield from self._without_workers(made, step)
            return
        yield from self._workers(made)
        yield from self._pin_thread(made)
        yield from self._main_thread(made)
        yield from self._neighbours(made)

    # ------------------------------------------------------------------------------------------------ of the step

    def _step(self, made: Treatment) -> Iterator[Bound]:
        """Training on ready batches, with the transfers that the configuration has."""
        baseline, wanted = self._known.journal.baseline, made.configuration
        if baseline is not None and self._has_no_more_threads(made):
            replay = host_batch(baseline, pin_memory=wanted.pin_memory, non_blocking=wanted.non_blocking is True)
            for ceiling in (replay.id, COMPUTE_ONLY):
                if ceiling in self._ratios and not self._disturbed(ceiling, made):
                    yield Bound(self._ratios[ceiling].value, "training on batches that are ready is no faster")
        for over, ratio in self.measured:
            if over.configuration.num_workers == 0 and over.id != made.id:
                rest = self._times.beside_fetching(over.id, transfers=_same_transfers(over, made))
                if rest:
                    yield Bound(ratio / rest, "the step takes that long when its batch is there")

    def _disturbed(self, ceiling: str, made: Treatment) -> bool:
        """Whether training with these transfers was clearly faster than on ready batches, which it cannot be."""
        bounded = (each for each, _ in self.measured if ceiling == COMPUTE_ONLY or _same_transfers(each, made))
        return any(self._clearly_slower(ceiling, each.id) for each in bounded)

    def _has_no_more_threads(self, made: Treatment) -> bool:
        """Whether its main thread has no more than the replays had, which are as the script as written."""
        own = baseline_treatment(self._known.journal.baseline or made.configuration)
        return self._threads.same(made, own) or self._threads.pin_thread(made)

    # -------------------------------------------------------------------------------------------- of making batches

    def _without_workers(self, made: Treatment, step: Bound | None) -> Iterator[Bound]:
        fetch = self._times.fetch
        if fetch is None:
            return
        pin = self._times.pin or 0.0 if made.configuration.pin_memory else 0.0
        total = fetch.wall + pin + (0.0 if step is None else 1 / step.ratio)
        if total > 0:
            yield Bound(1 / total, "without workers making a batch and training on it take turns")

    def _workers(self, made: Treatment) -> Iterator[Bound]:
        workers, cpus = made.configuration.num_workers, max(self._known.spec.usable_cpus, 1)
        fetch, baseline = self._times.fetch, self._known.journal.baseline
        if fetch is not None and fetch.wall > 0:
            yield Bound(workers / fetch.wall, f"{_in_words(workers)} at a time cannot make batches faster")
            on_cpus = fetch.cpu if self._waits_for_storage else fetch.wall
            if on_cpus > 0:
                yield Bound(cpus / on_cpus, f"making batches keeps {cpus} CPUs busy")
        if baseline is None or baseline.num_workers == 0:
            return
        for pinned in {False, made.configuration.pin_memory}:
            drained = self._ratios.get(loader_only(baseline, pin_memory=pinned).id)
            if drained is not None and baseline.num_workers <= max(workers, cpus):
                scale = max(workers / baseline.num_workers, 1.0)
                yield Bound(
                    drained.value * scale, f"the loader alone delivers no more with {_in_words(baseline.num_workers)}"
                )

    def _pin_thread(self, made: Treatment) -> Iterator[Bound]:
        taken = self._times.pin_thread
        if taken and has_pin_thread(made.configuration, self._known.accelerator):
            yield Bound(1 / taken, "the pin thread takes that long for a batch")

    # ------------------------------------------------------------------------------------------------ of neighbours

    def _main_thread(self, made: Treatment) -> Iterator[Bound]:
        """No faster than the main thread was, had it never waited; with fewer workers, where CPUs were left.

        Where several tell, the shortest time is believed: what else ran on its CPU made it longer in the others.
        """
        own, cpus = made.configuration, self._known.spec.usable_cpus
        pinned = [each for each in self.measured if each[0].configuration.pin_memory == own.pin_memory]
        telling = [
            each
            for each in pinned
            if each[0].id != made.id and 0 < each[0].configuration.num_workers <= max(own.num_workers, cpus)
        ]
        alike = [each for each in telling if _same_transfers(each[0], made)]
        found = [
            Bound(ratio / busy, f"the training process itself is busy that long, as with {over.id}")
            for over, ratio in alike or telling
            if (busy := self._times.main_busy(over.id, transfers=bool(alike)))
        ]
        if found:
            yield max(found)

    def _neighbours(self, made: Treatment) -> Iterator[Bound]:
        """Throughput rises with the workers at most in proportion, and falls once it has begun to fall."""
        own, prefetch = made.configuration.num_workers, _prefetch(made)
        alike = [each for each in self.measured if _same_transfers(each[0], made) and each[0].id != made.id]
        some = [each for each in alike if _prefetch(each[0]) == prefetch and each[0].configuration.num_workers > 0]
        row = sorted(some, key=lambda each: each[0].configuration.num_workers)
        below = [each for each in row if each[0].configuration.num_workers < own]
        above = [each for each in row if each[0].configuration.num_workers > own]
        if below:
            nearest, ratio = below[-1]
            scale = self._useful(own) / self._useful(nearest.configuration.num_workers)
            yield Bound(
                ratio * scale, f"a worker gives no more than with {_workers_of(nearest)}, on the CPUs that there are"
            )
        for near, far in [(below[-1:], below[-2:-1]), (above[:1], above[1:2])]:
            if near and far and self._clearly_slower(near[0][0].id, far[0][0].id):
                (one, ratio), (other, _) = near[0], far[0]
                yield Bound(ratio, f"{_workers_of(one)} are slower than {other.configuration.num_workers}")

    @property
    def _waits_for_storage(self) -> bool:
        fetch = self._times.fetch
        return fetch is not None and fetch.cpu < LATENCY_BOUND * fetch.wall

    def _useful(self, workers: int) -> int:
        """As many as can be at work at once."""
        return workers if self._waits_for_storage else min(workers, max(self._known.spec.usable_cpus, 1))

    @cached_property
    def measured(self) -> list[tuple[Treatment, float]]:
        """Configurations that compete, with their ratios."""
        treatments = self._known.journal.treatments
        measured = [(treatments[name], ratio.value) for name, ratio in self._ratios.items() if name in treatments]
        return [each for each in measured if each[0].competes]

    def _clearly_slower(self, one: str, other: str) -> bool:
        first, second = self._ratios[one], self._ratios[other]
        if first.ci95 is None or second.ci95 is None:
            return first.value * CLEARLY < second.value
        return first.ci95[1] < second.ci95[0]


def _same_transfers(one: Treatment, other: Treatment) -> bool:
    first, second = one.configuration, other.configuration
    return (first.pin_memory, first.non_blocking) == (second.pin_memory, second.non_blocking)


def _prefetch(made: Treatment) -> int:
    return made.configuration.prefetch_factor or DEFAULT_PREFETCH


def _workers_of(made: Treatment) -> str:
    return _in_words(made.configuration.num_workers)


def _in_words(workers: int) -> str:
    return "1 worker" if workers == 1 else f"{workers} workers"
