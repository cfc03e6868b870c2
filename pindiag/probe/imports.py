"""Changes a module right after the target has imported it, without importing it for the target."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def after_import(name: str, change: Callable[[ModuleType], None]) -> None:
    """Call `change` with module `name` now where it is loaded, else as soon as it is."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        change(loaded)
    else:
        sys.meta_path.insert(0, _Watcher(name, change))


class _Watcher:
    """Finder that lets the others find the module and runs `change` after its code."""

    def __init__(self, name: str, change: Callable[[ModuleType], None]) -> None:
        self.name = name
        self.change = change

    def find_spec(self, name: str, *args: Any) -> ModuleSpec | None:
        if name != self.name:
            return None
        spec = self._find_by_others(name, *args)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_change(module: ModuleType) -> None:
            execute(module)
            with contextlib.suppress(ValueError):
                sys.meta_path.remove(self)
            self.change(module)

        spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec

    def _find_by_others(self, name: str, *args: Any) -> ModuleSpec | None:
        """Ask the finders behind this one; it stays, since asking for a module is not yet importing it."""
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            spec = finder.find_spec(name, *args)
            if spec is not None:
                return spec
        return None
