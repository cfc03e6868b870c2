"""Files of the kernel that cannot be read, are empty, or hold neither the numbers nor the signs that belong there."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WAYS = ("refused", "empty", "damaged")


def spoil(monkeypatch: pytest.MonkeyPatch, aside: Path, path: Path, way: str) -> None:
    """Whoever opens `path` from now on finds it spoiled; what he finds instead lies `aside`."""
    real: Callable[..., Any] = open
    instead = aside / "spoiled"
    if way != "refused":
        instead.write_bytes(b"" if way == "empty" else re.sub(rb"[\d:-]", b"x", path.read_bytes()) + b"\xff\n")

    def opened(file: Any, *args: Any, **options: Any) -> Any:
        if str(file) != str(path):
            return real(file, *args, **options)
        if way == "refused":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(instead, *args, **options)

    monkeypatch.setattr("builtins.open", opened)
    monkeypatch.setattr("io.open", opened)
    monkeypatch.setattr(Path, "open", opened)  # that of Python 3.10 took io.open when it was imported
