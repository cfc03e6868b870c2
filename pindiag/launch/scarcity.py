"""Whether memory ran out while a launch ran, by what the kernel counts."""

from __future__ import annotations

from pathlib import Path

from pindiag.launch import cgroups

SCARCE_SHARE = 0.03
"""With less of the memory left than this, the kernel kills."""


class Scarcity:
    """Compares what the kernel has counted with what it had when this was made.

    Args:
        root: where /proc and /sys lie.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._kills_before = cgroups.out_of_memory_kills(root)

    def evidence(self, low_available_bytes: int | None, memory_bytes: int) -> str | None:
        """What shows that memory ran out since then; None: nothing.

        Args:
            low_available_bytes: the least of the machine's memory that was seen available.
            memory_bytes: the machine's memory.
        """
        left = None
        if low_available_bytes is not None and low_available_bytes < SCARCE_SHARE * memory_bytes:
            left = f"only {low_available_bytes / 1e6:.0f} MB of the machine's memory were left"
        if not self._killed():
            return left
        return f"the kernel killed a process: {left or self._limit_in_words()}"

    def _killed(self) -> bool:
        kills = cgroups.out_of_memory_kills(self._root)
        return kills is not None and self._kills_before is not None and kills > self._kills_before

    def _limit_in_words(self) -> str:
        """The innermost control group whose limit was reached, for it is the first to be met."""
        for folder in cgroups.folders("memory", self._root):
            limit = cgroups.own_memory_limit_bytes(folder)
            if limit is not None and cgroups.limit_reached(folder):
                return f"its control group reached its memory limit of {limit / 1e6:.0f} MB"
        return "it was out of memory"
