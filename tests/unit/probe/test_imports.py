"""Changing modules when, and only when, the target imports them."""

from __future__ import annotations

import importlib
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


def test_loaded_modules_are_changed_at_once(name: str) -> None:
    module = importlib.import_module(name)
    after_import(name, mark)
    assert module.mark == "changed"


def test_a_missing_module_stays_missing(name: str) -> None:
    after_import("imported_never", mark)
    with pytest.raises(ModuleNotFoundError, match="imported_never"):
        importlib.import_module("imported_never")
    assert not hasattr(importlib.import_module(name), "mark")
