"""Changes a module right after the target has imported it, without importing it for the target."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


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

    def find_spec(self, name: str, *_: Sequence[str] | ModuleType | None) -> ModuleSpec | None:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            sys.meta_path.insert(0, self)
            return None
        execute = spec.loader.exec_module

        def execute_and_change(module: ModuleType) -> None:
            execute(module)
            self.change(module)

        spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec
