"""Where the main thread's time goes in a mean step, and what the pin thread and transfers took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pindiag.model import Block, PinThreadMs, StageMs

NOT_SEEN = "no block was counted"
BEFORE_HAND_PINS = "recorded before pinning by hand was measured"
OVERLAP = "the calls of other threads count too, and together the stages take longer than the step"
BEYOND_NOISE = 0.05
"""Of a step, by which its stages may exceed it: some are reckoned from steps that were looked at."""
STAGE_FIELDS = {
    "wait": "wait_ms",
    "transfer": "transfer_ms",
    "pin": "hand_pin_ms",
    "synchronise": "synchronise_ms",
    "optimizer": "optimizer_ms",
}
"""Stages that are measured, and the fields of a block that hold them."""


@dataclass(frozen=True)
class Totals:
    """Sums over the counted parts of a trial's blocks."""

    blocks: Sequence[Block]

    @property
    def steps(self) -> int:
        """Counted steps."""
        return sum(block.steps for block in self.blocks)

    @property
    def ms(self) -> float:
        """Counted time."""
        return sum(block.seconds for block in self.blocks) * 1e3

    @property
    def step_ms(self) -> float | None:
        """A mean step."""
        return self.ms / self.steps if self.steps else None

    def missing(self, field: str) -> str | None:
        """Why a field of its blocks is null, where it is."""
        if not self.blocks:
            return NOT_SEEN
        if field == "script_ms":
            return OVERLAP if self.steps and self.stages().script is None else None
        stage = field.removesuffix("_ms")
        found = (block.missing.get(field) or block.missing.get(stage) for block in self.blocks)
        told = next((reason for reason in found if reason is not None), None)
        if told is None and field == "hand_pin_ms" and any(block.hand_pin_ms is None for block in self.blocks):
            return BEFORE_HAND_PINS
        return told

    def stage_ms(self, field: str) -> float | None:
        """A stage of a mean step, in milliseconds; None where it was not measured."""
        if not self.steps or self.missing(field) is not None:
            return None
        return float(sum(getattr(block, field) for block in self.blocks)) / self.steps

    def stages(self) -> StageMs:
        """The six stages; script is what the others leave of the step, unmeasured ones included."""
        named = {stage: self.stage_ms(field) for stage, field in STAGE_FIELDS.items()}
        return StageMs(**named, script=self._rest_ms(sum(ms or 0.0 for ms in named.values())))

    def _rest_ms(self, stages_ms: float) -> float | None:
        """What stages leave of a step; None where they exceed it."""
        if self.step_ms is None or stages_ms > (1 + BEYOND_NOISE) * self.step_ms:
            return None
        return max(self.step_ms - stages_ms, 0.0)

    def pin_thread(self) -> PinThreadMs | None:
        """The pin thread (without workers, the main thread's pinning) in a mean batch."""
        found = [block.pin_thread for block in self.blocks if block.pin_thread is not None]
        batches = sum(thread.batches for thread in found)
        if not batches:
            return None
        return PinThreadMs(
            receive=sum(thread.receive_ms for thread in found) / batches,
            pin=sum(thread.pin_ms for thread in found) / batches,
            idle=sum(thread.idle_ms for thread in found) / batches,
        )

    @property
    def pin_in_main_thread(self) -> bool | None:
        """Whether the main thread pins by itself."""
        return next((block.pin_thread.in_main_thread for block in self.blocks if block.pin_thread is not None), None)

    @property
    def pin_busy_share(self) -> float | None:
        """Share of the counted time in which whoever pins does not wait for data.

        Unmapping the shared memory of a batch that is done falls between two batches and into neither receiving nor
        pinning: of a pin thread, all that is not waiting is work.
        """
        found = [
            (b.pin_thread, b.seconds * 1e3) for b in self.blocks if b.pin_thread is not None and b.pin_thread.batches
        ]
        busy = sum(pin.pin_ms if pin.in_main_thread else max(0.0, ms - pin.idle_ms) for pin, ms in found)
        return busy / sum(ms for _, ms in found) if found else None
