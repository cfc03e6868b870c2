"""Show a page where there is somebody who could see it."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def has_display() -> bool:
    """Whether a window could appear; without one, Python would start a text browser in the user's terminal."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))


def show(page: Path) -> bool:
    """Open a page in the browser; False where there is no display or no browser."""
    import webbrowser

    return has_display() and webbrowser.open(page.resolve().as_uri())
