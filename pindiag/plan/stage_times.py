"""Times of stages as blocks show them, in units of the step of the script as written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NamedTuple

from pindiag.model import Block
from pindiag.plan.known import Known

StageMs = Callable[[Block], float]


class Fetch(NamedTuple):
    """Making one batch, alone."""

    wall: float
    cpu: float
    """Of the main thread that made it."""


class StageTimes:
    """What stages take, whatever the configuration; shares of blocks, brought to one scale by paired ratios.

    Args:
        known: the state of the run.
        ratios: throughput of trials over the baseline's.
    """

    def __init__(self, known: Known, ratios: Mapping[str, float]) -> None:
        self._known = known
        self._ratios = ratios

    @cached_property
    def _blocks(self) -> dict[str, list[Block]]:
        found: dict[str, list[Block]] = defaultdict(list)
        for block in self._known.journal.blocks("discover", "round"):
            trial = self._known.journal.trial(block.trial)
            if trial in self._ratios and block.steps > 0:
                found[trial].append(block)
        return found

    @cached_property
    def fetch(self) -> Fetch | None:
        """Making a batch, as the main process does without workers; None where no such block was counted."""
        alone = [trial for trial in self._blocks if self._makes_its_own(trial)]
        found = [Fetch(self._share(trial, _fetch_ms), self._share(trial, _fetch_cpu_ms)) for trial in alone]
        return min(found, default=None)

    @cached_property
    def pin(self) -> float | None:
        """Pinning a batch in the main thread."""
        found = [self._share(trial, _main_pin_ms) for trial in self._blocks if self._makes_its_own(trial)]
        return min((share for share in found if share > 0), default=None)

    @cached_property
    def pin_thread(self) -> float | None:
        """A batch's time in the pin thread, waiting for workers apart, where that is shortest."""
        found = [self._share(trial, _pin_thread_ms) for trial in self._blocks]
        return min((share for share in found if share > 0), default=None)

    def beside_fetching(self, trial: str, *, transfers: bool) -> float | None:
        """Share of a trial's step, with transfers or without, in which no batch is waited for; None: not measured."""
        rest = self._blocks.get(trial) and self._of_step(trial, _rest_ms if transfers else _rest_beside_transfers_ms)
        return rest or None

    def main_busy(self, trial: str, *, transfers: bool) -> float | None:
        """Share of a trial's step in which the main thread works, with its transfers or without; None: not measured."""
        busy = self._blocks.get(trial) and self._of_step(trial, _busy_ms if transfers else _busy_beside_transfers_ms)
        return busy or None

    def _makes_its_own(self, trial: str) -> bool:
        made = self._known.journal.treatments[trial]
        return made.competes and made.configuration.num_workers == 0

    def _share(self, trial: str, stage_ms: StageMs) -> float:
        return self._of_step(trial, stage_ms) / self._ratios[trial]

    def _of_step(self, trial: str, stage_ms: StageMs) -> float:
        blocks = self._blocks[trial]
        return sum(map(stage_ms, blocks)) / sum(map(_step_ms, blocks))


def _step_ms(block: Block) -> float:
    return block.seconds * 1e3


def _rest_ms(block: Block) -> float:
    return _step_ms(block) - block.wait_ms


def _rest_beside_transfers_ms(block: Block) -> float:
    return _rest_ms(block) - block.transfer_ms - block.synchronise_ms


def _busy_ms(block: Block) -> float:
    return _rest_ms(block) + block.wait_cpu_ms


def _busy_beside_transfers_ms(block: Block) -> float:
    return _rest_beside_transfers_ms(block) + block.wait_cpu_ms


def _main_pin_ms(block: Block) -> float:
    pinning = block.pin_thread
    return pinning.pin_ms if pinning is not None and pinning.in_main_thread else 0.0


def _fetch_ms(block: Block) -> float:
    return max(block.wait_ms - _main_pin_ms(block), 0.0)


def _fetch_cpu_ms(block: Block) -> float:
    return max(block.wait_cpu_ms - _main_pin_ms(block), 0.0)


def _pin_thread_ms(block: Block) -> float:
    pinning = block.pin_thread
    if pinning is None or pinning.in_main_thread or pinning.batches == 0:
        return 0.0
    return (pinning.receive_ms + pinning.pin_ms) / pinning.batches * block.steps
