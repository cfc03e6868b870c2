"""Changing modules when, and only when, the target imports them."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pindiag.probe.imports import after_import


def mark(module: ModuleType) -> None:
    module.mark = "changed"  # type: ignore[attr-defined]


@pytest.fixture
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "imported_late.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "imported_late", raising=False)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    return "imported_late"


def test_changed_after_its_code_has_run(name: str) -> None:
    watchers = list(sys.meta_path)
    after_import(name, mark)
    assert name not in sys.modules
    module = importlib.import_module(name)
    assert (module.value, module.mark) == (1, "changed")
    assert sys.meta_path == watchers


def test_asking_for_a_module_is_not_importing_it(name: str) -> None:
    after_import(name, mark)
    assert importlib.util.find_spec(name) is not None
    assert importlib.util.find_spec(name) is not None
    assert importlib.import_module(name).mark == "changed"


def test_several_changes_of_one_module(name: str) -> None:
    changes: list[str] = []
    after_import(name, lambda _: changes.append("first"))
    after_import(name, lambda _: changes.append("second"))
    importlib.import_module(name)
    importlib.import_module(name)
    assert changes == ["first", "second"]


def test_a_failed_import_can_be_tried_again(name: str, tmp_path: Path) -> None:
    after_import(name, mark)
    source = tmp_path / "imported_late.py"
    source.write_text("1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        importlib.import_module(name)
    source.write_text("value = 'mended'\n")
    importlib.invalidate_caches()
    assert importlib.import_module(name).mark == "changed"


def test_loaded_modules_are_changed_at_once(name: str) -> None:
    module = importlib.import_module(name)
    after_import(name, mark)
    assert module.mark == "changed"


def test_a_missing_module_stays_missing(name: str) -> None:
    after_import("imported_never", mark)
    with pytest.raises(ModuleNotFoundError, match="imported_never"):
        importlib.import_module("imported_never")
    assert not hasattr(importlib.import_module(name), "mark")
