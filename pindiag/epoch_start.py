"""What starting workers takes of an epoch: asked by plan, which makes the experiment, and by its rule alike."""

from __future__ import annotations

WORTH_A_TRY = 0.05
"""Share of an epoch below which workers that live on could bring less than 1.05 ×."""


def start_share(startup_s: float, batch_s: float, epoch_s: float) -> float:
    """From asking for an iterator to its first batch, less the making of any batch, of an epoch of natural length."""
    return min(max(startup_s - batch_s, 0.0) / epoch_s, 1.0)
