"""What starting workers costs a live block, and how long a block lasts for it.

Workers start anew in every block. Where that is dear, the same time holds fewer blocks, and longer ones are worth their
price: what differs from block to block is averaged over fewer of them, but what differs from step to step over more.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import msgspec

from pindiag.journal import Launch
from pindiag.model import BlockOrder
from pindiag.plan.known import Known

DEAR_SHARE = 0.15
"""Of the budget, about a quarter of the race's time: what starting workers in all blocks of all rounds may take before
anything is done about it."""

LONGEST_S = 10.0
"""Drift sets in beyond: the blocks of a round are to be compared with each other."""


def lengthened(order: BlockOrder, known: Known) -> BlockOrder:
    """A block as long as is worth its start-up, where starting workers is dear; else as it is.

    With a cost per block of its own and a cost per second, the variance for a given time is least where a block lasts
    the square root of (start-up x the length at which noise between blocks and within them weigh the same). The usual
    length stands for that one. It is never more than a fifth dearer than a block of the usual length.
    """
    start_s = start_up_s(known.live_launches)
    if start_s is None or start_s <= order.seconds or not _dear(start_s, known):
        return order
    seconds = round(min(math.sqrt(start_s * order.seconds), LONGEST_S), 1)
    why = (
        f"starting workers took {start_s:.1f} s a block, so blocks last {seconds:g} s instead of {order.seconds:g} s, "
        "and fewer of them fit into the budget"
    )
    return msgspec.structs.replace(order, seconds=seconds, why_seconds=why)


def start_up_s(launches: Sequence[Launch]) -> float | None:
    """Median time from the start of workers to the first batch, over the blocks of live launches; None without any."""
    times = [born.first_batch_ms / 1e3 for launch in launches for born in launch.worker_starts if born.first_batch_ms]
    return statistics.median(times) if times else None


def _dear(start_s: float, known: Known) -> bool:
    turns = 2 + len(known.wanted)
    return start_s * turns * known.spec.rounds > DEAR_SHARE * known.spec.budget_s
