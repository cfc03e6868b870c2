"""Other batch sizes: measured beside the race when asked for, never part of it, since they change training itself."""

from __future__ import annotations

from collections.abc import Sequence

from pindiag.model import Configuration, Treatment
from pindiag.plan.treatments import treatment


def batch_sizes(asked: Sequence[int] | None, baseline: Configuration) -> list[Treatment]:
    """The script as written with other batch sizes.

    Args:
        asked: sizes; empty: half, twice and four times the script's own; None: no other size is wanted.
        baseline: what the script itself says.
    """
    own = baseline.batch_size or 0
    sizes = [] if asked is None else asked or [own // 2, 2 * own, 4 * own]
    return [treatment(baseline, {"batch_size": size}) for size in sizes if size not in (0, own)]
