"""Where the files lie that makers of batches have open or mapped: filesystem and device, never the files' names."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import Literal, NamedTuple

LEAST_MAPPED_BYTES = 1 << 20
"""Smaller mappings are caches, locales and the like."""
_NOT_DATA = re.compile(
    r"^/(?:proc|sys|dev|usr|lib|lib64|bin|etc)/|^/memfd:|/(?:site|dist)-packages/|\.so(?:\.|$)|\.pyc?$"
)
_ESCAPED = re.compile(r"\\([0-7]{3})")

How = Literal["open", "mapped"]


class Mount(NamedTuple):
    """A line of /proc/PID/mountinfo."""

    point: str
    filesystem: str
    source: str
    number: str
    """Of the device: "259:1"."""


class Seen(NamedTuple):
    """The fields of a `StorageSeen`."""

    filesystem: str
    device: str | None
    rotational: bool | None
    how: How


class Storage:
    """Looks into processes for the files that they read.

    Args:
        own: a folder whose files are pindiag's.
        proc: where the process table is mounted.
        sys: where sysfs is.
    """

    def __init__(self, own: str, proc: str = "/proc", sys: str = "/sys") -> None:
        self._own = own.rstrip("/") + "/"
        self._proc = proc
        self._sys = sys
        self._mounts: list[Mount] | None = None
        self._told: set[Seen] = set()

    def opened(self, pid: int) -> list[Seen]:
        """What was not seen before among the files that a process has open for reading alone."""
        return self._news(pid, self._open_files(pid), "open")

    def mapped(self, pid: int) -> list[Seen]:
        """What was not seen before among the large files that a process has mapped as data. Costs milliseconds."""
        return self._news(pid, self._mapped_files(pid), "mapped")

    def _news(self, pid: int, paths: Iterator[str], how: How) -> list[Seen]:
        found = {self._describe(pid, path, how) for path in paths}
        news = [seen for seen in found if seen is not None and seen not in self._told]
        self._told.update(news)
        return news

    def _open_files(self, pid: int) -> Iterator[str]:
        folder = f"{self._proc}/{pid}"
        for name in _listed(f"{folder}/fd"):
            link = f"{folder}/fd/{name}"
            try:
                path = os.readlink(link)
                is_data = self._is_data(path) and _reads(f"{folder}/fdinfo/{name}")
                if is_data and stat.S_ISREG(os.stat(link).st_mode):
                    yield path
            except OSError:
                continue

    def _mapped_files(self, pid: int) -> Iterator[str]:
        sizes: dict[str, int] = {}
        code: set[str] = set()
        for line in _text(f"{self._proc}/{pid}/maps").splitlines():
            words = line.split(maxsplit=5)
            if len(words) == 6 and self._is_data(words[5]):
                sizes[words[5]] = sizes.get(words[5], 0) + _length(words[0])
                code |= {words[5]} if "x" in words[1] else set()
        yield from (path for path, size in sizes.items() if size >= LEAST_MAPPED_BYTES and path not in code)

    def _is_data(self, path: str) -> bool:
        return path.startswith("/") and not path.startswith(self._own) and not _NOT_DATA.search(path)

    def _describe(self, pid: int, path: str, how: How) -> Seen | None:
        mount = self._mount_of(pid, path)
        if mount is None:
            return None
        device = mount.source if mount.source.startswith("/dev/") else None
        return Seen(mount.filesystem, device, self._turns(mount.number) if device else None, how)

    def _mount_of(self, pid: int, path: str) -> Mount | None:
        if self._mounts is None:
            lines = _text(f"{self._proc}/{pid}/mountinfo").splitlines()
            self._mounts = [mount for line in lines if (mount := _mount(line)) is not None]
        above = (mount for mount in self._mounts if f"{path}/".startswith(mount.point.rstrip("/") + "/"))
        return max(above, key=lambda mount: len(mount.point), default=None)

    def _turns(self, number: str) -> bool | None:
        """Whether a device, or the one that a partition lies on, turns."""
        folder = f"{self._sys}/dev/block/{number}"
        texts = (_text(f"{folder}/{name}").strip() for name in ("queue/rotational", "../queue/rotational"))
        return next((text == "1" for text in texts if text), None)


def _mount(line: str) -> Mount | None:
    head, _, tail = line.partition(" - ")
    place, what = head.split(), tail.split()
    if len(place) < 5 or len(what) < 2:
        return None
    return Mount(_plain(place[4]), what[0], _plain(what[1]), place[2])


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)


def _reads(fdinfo: str) -> bool:
    """Whether a descriptor was opened for reading alone: data sets are, logs and locks are not."""
    flags = re.search(r"^flags:\s*([0-7]+)$", _text(fdinfo), re.MULTILINE)
    return flags is not None and int(flags[1], 8) & os.O_ACCMODE == os.O_RDONLY


def _length(addresses: str) -> int:
    """Of a mapping from "7f00-8000"; 0 where the line is damaged."""
    try:
        first, last = (int(address, 16) for address in addresses.split("-"))
    except ValueError:
        return 0
    return last - first


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
