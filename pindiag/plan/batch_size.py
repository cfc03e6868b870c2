"""Other batch sizes: measured beside the race when asked for, never part of it, since they change training itself."""

from __future__ import annotations

from collections.abc import Sequence

from pindiag.errors import UsageError
from pindiag.model import Configuration, Treatment
from pindiag.plan.treatments import treatment

BY_DEFAULT = "default"
"""What `--sweep-batch-size` means without values."""


def parse_batch_sizes(text: str) -> list[int]:
    """Sizes from e.g. "32,64,128"; none for "default", which stands for half, twice and four times the script's own.

    Raises:
        UsageError: a size is no whole number from 1.
    """
    if text == BY_DEFAULT:
        return []
    words = [word.strip() for word in text.split(",")]
    wrong = next((word for word in words if not word.isdecimal() or int(word) < 1), None)
    if wrong is not None:
        raise UsageError(
            f"--sweep-batch-size: {wrong!r} is no batch size.",
            "Write for example --sweep-batch-size 32,64,128, or the option alone behind the script.",
        )
    return list(dict.fromkeys(int(word) for word in words))


def batch_sizes(asked: Sequence[int] | None, baseline: Configuration) -> list[Treatment]:
    """The script as written with other batch sizes.

    Args:
        asked: sizes; empty: half, twice and four times the script's own; None: no other size is wanted.
        baseline: what the script itself says.
    """
    own = baseline.batch_size or 0
    sizes = [] if asked is None else asked or [own // 2, 2 * own, 4 * own]
    return [treatment(baseline, {"batch_size": size}) for size in sizes if size not in (0, own)]
