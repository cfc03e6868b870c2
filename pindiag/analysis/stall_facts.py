"""Facts of slow steps that recur at one distance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import fmean, median
from typing import NamedTuple

from pindiag.analysis.evidence import TrialEvidence
from pindiag.analysis.fact import fact
from pindiag.analysis.slow_steps import period
from pindiag.model import Block, Fact, Scalar

NO_PERIOD = "its slow steps do not recur at one distance, or too few steps were timed"
NO_SITE = "no call that waits for the device is made that often"
UNITS = {
    "stall_period_steps": "steps",
    "stall_ms": "ms",
    "stall_share": "1",
    "stall_wait_share": "1",
    "stall_site": None,
}
NEAR = 0.2
"""Of the calls that one in so many steps makes: a block begins and ends anywhere in a period."""


def of_stalls(trial: TrialEvidence) -> Iterator[Fact]:
    """Of the blocks of the script in which slow steps recur at the distance that most of them share."""
    every, blocks = _recurring(trial)
    values: dict[str, Scalar] = {} if every is None else _figures(blocks, every)
    numbers = ", ".join(str(block.block) for block in blocks)
    source = f"steps of blocks {numbers}" if blocks else f"steps of {trial.source}"
    for name, unit in UNITS.items():
        reason = NO_SITE if values and name == "stall_site" else NO_PERIOD
        yield fact(name, values.get(name), unit, source, reason, trial=trial.id)


def _figures(blocks: list[Block], every: int) -> dict[str, Scalar]:
    slow = [_slow_step(block, every) for block in blocks]
    extra_ms = fmean(one.extra_ms for one in slow)
    step_ms = fmean(fmean(block.step_ms) for block in blocks)
    return {
        "stall_period_steps": every,
        "stall_ms": extra_ms,
        "stall_share": extra_ms / (every * step_ms),
        "stall_wait_share": fmean(one.wait_share for one in slow),
        "stall_site": _site(blocks, every),
    }


class _Slow(NamedTuple):
    """The slow step of each period in one block."""

    extra_ms: float
    wait_share: float


def _recurring(trial: TrialEvidence) -> tuple[int | None, list[Block]]:
    """The distance that most blocks share, and these; None where fewer than half of all blocks agree."""
    found = {block.block: period(block.step_ms) for block in trial.blocks if block.step_ms}
    periods = Counter(every for every in found.values() if every is not None)
    every, times = next(iter(periods.most_common(1)), (None, 0))
    if every is None or 2 * times < len(found):
        return None, []
    return every, [block for block in trial.blocks if found.get(block.block) == every]


def _slow_step(block: Block, every: int) -> _Slow:
    """How much longer its slow steps take than the others, and how much of that they wait for their batch."""
    phases = [block.step_ms[first::every] for first in range(every)]
    first = max(range(every), key=lambda place: median(phases[place]))
    usual_ms, usual_wait_ms = median(block.step_ms), median(block.step_wait_ms)
    extra_ms = fmean(block.step_ms[first::every]) - usual_ms
    waits_ms = fmean(block.step_wait_ms[first::every]) - usual_wait_ms
    return _Slow(extra_ms, min(max(waits_ms / extra_ms, 0.0), 1.0) if extra_ms > 0 else 0.0)


def _site(blocks: list[Block], every: int) -> str | None:
    """The place of a call that waits for the device once a period."""
    steps = sum(block.steps for block in blocks)
    calls: Counter[str] = Counter()
    for block in blocks:
        for site in block.syncs:
            calls[site.location] += site.calls
    near = {place: count for place, count in calls.items() if abs(count * every / steps - 1) <= NEAR}
    return max(near, key=lambda place: near[place], default=None)
