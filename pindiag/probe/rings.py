"""One preallocated file a worker, mapped into it, that holds its newest batches and outlives it."""

from __future__ import annotations

import contextlib
import mmap
import os
import struct

RING_HEADER = struct.Struct("<8sqqqq")
"""Magic, launch, pid, worker, number of batches written so far."""
FETCHED_FIELDS = (
    *("started_ns", "idle_ns", "fetch_ns", "collate_ns", "cpu_ns", "samples"),
    *("process_cpu_ns", "minor_faults", "major_faults", "run_delay_ns"),
)
"""What is known of a batch once its worker has made it; -1 where a number is not."""
HAND_OFF_FIELDS = ("handed_ns", "hand_off_ns", "hand_off_cpu_ns", "blocked_ns", "sent_bytes")
"""What is known once it has left the worker; -1 until then."""
RING_ENTRY = struct.Struct(f"<{len(FETCHED_FIELDS) + len(HAND_OFF_FIELDS)}q")
RING_MAGIC = b"PDRING02"
RING_BATCHES = 2048
"""The newest batches that a ring holds: 240 kB a worker."""

_COUNT = struct.Struct("<q")
_COUNT_OFFSET = RING_HEADER.size - _COUNT.size
_FETCHED = struct.Struct(f"<{len(FETCHED_FIELDS)}q")
_HAND_OFF = struct.Struct(f"<{len(HAND_OFF_FIELDS)}q")
_NOT_YET = (-1,) * len(HAND_OFF_FIELDS)


class Ring:
    """The newest batches of one worker.

    Raises:
        OSError: the file cannot be made whole, e.g. on a full disk (a sparse one would kill the worker by SIGBUS).
    """

    def __init__(self, folder: str, launch: int, worker: int) -> None:
        self.path = os.path.join(folder, f"{launch:03d}-{os.getpid()}.ring")
        self.written = 0
        size = RING_HEADER.size + RING_BATCHES * RING_ENTRY.size
        self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self.fd, 0, size)
            elif os.write(self.fd, bytes(size)) != size:
                raise OSError("the disk is full")
            self.memory = mmap.mmap(self.fd, size)
        except OSError:
            os.close(self.fd)
            os.unlink(self.path)
            raise
        RING_HEADER.pack_into(self.memory, 0, RING_MAGIC, launch, os.getpid(), worker, 0)

    def write(self, *fetched: int) -> int:
        """Write a batch that was made, and only then count it; returns its number."""
        number = self.written
        place = _place(number)
        _HAND_OFF.pack_into(self.memory, place + _FETCHED.size, *_NOT_YET)
        _FETCHED.pack_into(self.memory, place, *fetched)
        self.written = number + 1
        _COUNT.pack_into(self.memory, _COUNT_OFFSET, self.written)
        return number

    def hand_off(self, number: int, *figures: int) -> None:
        """Add how a batch left the worker, unless a newer one has taken its place."""
        if self.written - number <= RING_BATCHES:
            _HAND_OFF.pack_into(self.memory, _place(number) + _FETCHED.size, *figures)

    def close(self) -> None:
        """Give back the part that was not used; batches that are still being handed off write into the rest."""
        with contextlib.suppress(OSError):  # Windows cuts no file that is mapped
            os.ftruncate(self.fd, _place(min(self.written, RING_BATCHES), wrap=False))
        os.close(self.fd)


def _place(number: int, *, wrap: bool = True) -> int:
    return RING_HEADER.size + (number % RING_BATCHES if wrap else number) * RING_ENTRY.size
