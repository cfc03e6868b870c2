"""What is written into a run: whole or not at all, and in one sentence where there is no room."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from pindiag.errors import DiskFull
from pindiag.store import RunDirectory


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "out")


def names(run: RunDirectory) -> set[str]:
    return {path.name for path in run.path.iterdir()}


def test_a_file_is_replaced_whole(run: RunDirectory) -> None:
    before = names(run)
    for content in (b"first", b"second"):
        run.write(run.summary_md, content)
        assert run.summary_md.read_bytes() == content
    assert names(run) == before | {"summary.md"}


def test_a_file_that_does_not_fit_leaves_the_old_one(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    run.write(run.summary_md, b"first")
    before = names(run)
    whole = Path.write_bytes

    def half(path: Path, content: bytes) -> int:
        whole(path, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(OSError, match="No space"):
        run.write(run.summary_md, b"second")
    assert run.summary_md.read_bytes() == b"first"
    assert names(run) == before


class Full:
    """A file on a disk that takes half of what is written."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __enter__(self) -> Full:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def tell(self) -> int:
        return int(self._file.tell())

    def write(self, content: bytes) -> None:
        self._file.write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_half_a_line_is_taken_back(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = run.journal / "parent.jsonl"
    run.append(journal, b"first")
    plain = Path.open
    with monkeypatch.context() as full:
        full.setattr(Path, "open", lambda path, mode: Full(plain(path, mode)))
        with pytest.raises(OSError, match="No space"):
            run.append(journal, b"a long second line")
    run.append(journal, b"third")
    assert journal.read_bytes() == b"first\nthird\n"


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "The disk of {} is full; what"),
        (errno.EDQUOT, "The disk quota for {} is used up; what"),
        (errno.EFBIG, "A file in {} has reached the limit on the size of files (`ulimit -f`); what"),
    ],
)
def test_no_room_is_one_sentence(run: RunDirectory, number: int, said: str) -> None:
    with pytest.raises(DiskFull) as raised, run.filling():
        raise OSError(number, "x")
    assert raised.value.cause == f"{said.format(run.path)} was measured before is kept."
    assert f"--resume {run.path}" in raised.value.hint


def test_other_errors_pass(run: RunDirectory) -> None:
    with pytest.raises(PermissionError), run.filling():
        raise PermissionError(errno.EACCES, "x")
