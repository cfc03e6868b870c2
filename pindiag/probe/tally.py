"""What the hooks on torch's calls count."""

from __future__ import annotations

from typing import Any

import torch

TO = "to"
"""Kind of the transfers whose `non_blocking` treatments set."""


class Tally:
    """What the hooks saw while it was the current one. Lists keep a step's cost low: see the names of the slots."""

    __slots__ = (
        "hooked_ns", "known", "own_ns", "pin_ns", "pinned", "pins", "sync_ns", "syncs", "transfers",
    )  # fmt: skip

    def __init__(self) -> None:
        self.transfers: dict[tuple[str, str], list[int]] = {}
        """Location and kind to calls, bytes, ns, pinned calls, non-blocking calls."""
        self.known: dict[tuple[int, int, str], list[int]] = {}
        """The same by what a frame of the script's tells of itself, whose code `_places` holds; and kind."""
        self.syncs: dict[tuple[str, str], list[int]] = {}
        """Location and kind to calls, ns, calls answered without waiting."""
        self.pins: dict[str, list[int]] = {}
        """Location to calls, bytes, ns."""
        self.pinned: set[int] = set()
        """Addresses of storages that are known to be pinned: asking the driver costs more than the hook."""
        self.sync_ns = 0
        self.pin_ns = 0
        self.hooked_ns = 0
        """Time in all hooked calls: what the stages around them must not count again."""
        self.own_ns = 0

    @property
    def transfer_ns(self) -> int:
        """Time in host-to-device calls."""
        return sum(site[2] for site in self.transfers.values())

    def transfer_sites(self, each: float = 1.0) -> list[dict[str, Any]]:
        """Records of the host-to-device calls.

        Args:
            each: how many calls one that was counted stands for.
        """
        return [
            {
                "location": location,
                "kind": kind,
                "calls": round(calls * each),
                "bytes": round(size * each),
                "ms": ns * each / 1e6,
                "pinned_calls": round(pinned * each),
                "non_blocking_calls": round(non_blocking * each),
            }
            for (location, kind), (calls, size, ns, pinned, non_blocking) in self.transfers.items()
        ]

    def sync_sites(self) -> list[dict[str, Any]]:
        """Records of the calls that waited."""
        return [
            {"location": location, "kind": kind, "calls": calls, "ms": ns / 1e6, "lazy_calls": lazy_calls}
            for (location, kind), (calls, ns, lazy_calls) in self.syncs.items()
        ]

    def pin_sites(self) -> list[dict[str, Any]]:
        """Records of the script's own calls of pin_memory."""
        return [
            {"location": location, "calls": calls, "bytes": size, "ms": ns / 1e6}
            for location, (calls, size, ns) in self.pins.items()
        ]

    def is_pinned(self, source: torch.Tensor) -> bool:
        """Whether a host tensor's memory is pinned; what was pinned stays so while the allocator keeps it."""
        try:
            place = source.untyped_storage().data_ptr()
        except (NotImplementedError, RuntimeError):  # as in `storage_of`, whose call costs as much again
            return source.is_pinned()
        if place in self.pinned:
            return True
        pinned = source.is_pinned()
        if pinned and place:
            self.pinned.add(place)
        return pinned

    def non_blocking(self) -> bool | str | None:
        """What the transfers say whose `non_blocking` can be changed: true, false, "mixed"; None without any."""
        sites = [site for (_, kind), site in self.transfers.items() if kind == TO]
        calls = sum(site[0] for site in sites)
        non_blocking = sum(site[4] for site in sites)
        if calls == 0:
            return None
        return "mixed" if 0 < non_blocking < calls else non_blocking == calls
