"""Commands that run another one where a disk is small: in a mount namespace of its own, where one may be made."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path


def mounted(folder: Path, size: str, *, left: Path, after: str = ":") -> list[str] | None:
    """Words before a command that give it a small file system of its own; None: this user may not mount any.

    Args:
        folder: where it is mounted.
        size: as mount takes it, e.g. "8m".
        left: takes the names of what the command left in it.
        after: shell command that follows, inside.
    """
    if not _may_mount():
        return None
    script = 'mount -t tmpfs -o "size=$2" tmpfs "$1" && left="$3" folder="$1" && shift 3 && { "$@"; code=$?; }'
    return [
        *_unshare(),
        "sh",
        "-c",
        f'{script}; ls -A "$folder" >"$left"; {after}; exit $code',
        "sh",
        str(folder),
        size,
        str(left),
    ]


def _unshare() -> list[str]:
    return ["unshare", "--mount", *([] if os.getuid() == 0 else ["--map-root-user"])]


@cache
def _may_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run([*_unshare(), "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], capture_output=True, check=False)
    return tried.returncode == 0
