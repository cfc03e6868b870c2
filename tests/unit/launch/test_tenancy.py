"""One pindiag at a time in a directory."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from pindiag.errors import RunInUse
from pindiag.launch.tenancy import is_held, tenancy


def test_held_by_one_until_it_leaves(tmp_path: Path) -> None:
    with tenancy(tmp_path):
        assert is_held(tmp_path)
        with pytest.raises(RunInUse, match="Another pindiag is running in"), tenancy(tmp_path):
            pass
    assert not is_held(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_held_where_there_are_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with tenancy(tmp_path):
        assert not is_held(tmp_path)
