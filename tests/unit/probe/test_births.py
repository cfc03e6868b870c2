"""What is told of the birth of an iterator."""

from __future__ import annotations

import io
from multiprocessing import reduction
from multiprocessing.process import BaseProcess
from types import SimpleNamespace

import pytest
import torch

from pindiag.probe import births

MS = 1_000_000


@pytest.fixture
def dump(clock, monkeypatch: pytest.MonkeyPatch):
    def slow(obj: object, file: io.IOBase, protocol: object = None) -> None:
        clock.sleep(3 * MS)
        file.write(b"x" * 100)

    monkeypatch.setattr(reduction, "dump", slow)
    births.install()
    return reduction.dump


def test_pickling_of_the_workers_alone(dump) -> None:
    mine, other = BaseProcess(), BaseProcess()
    file = io.BytesIO()
    dump({"what": "preparation"}, file)
    for process in (mine, other):
        dump(process, file)
    iterator = SimpleNamespace(_workers=[mine, BaseProcess()], _pin_memory=False)
    assert births.figures(iterator, None) == {"pickle_ms": 3.0, "pickle_bytes": 100, "batch_pinned": None}


def test_into_a_pipe_no_bytes_are_counted(dump) -> None:
    pipe = SimpleNamespace(write=lambda data: None, seekable=lambda: False)
    process = BaseProcess()
    dump(process, pipe)
    told = births.figures(SimpleNamespace(_workers=[process]), None)
    assert (told["pickle_ms"], told["pickle_bytes"]) == (3.0, None)


def test_an_error_is_raised_and_nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(obj: object, file: object) -> None:
        raise TypeError("cannot pickle")

    monkeypatch.setattr(reduction, "dump", broken)
    births.install()
    process = BaseProcess()
    with pytest.raises(TypeError, match="cannot pickle"):
        reduction.dump(process, io.BytesIO())
    assert births.figures(SimpleNamespace(_workers=[process]), None)["pickle_ms"] is None


def test_forked_workers_and_none_at_all() -> None:
    nothing = {"pickle_ms": None, "pickle_bytes": None, "batch_pinned": None}
    assert births.figures(SimpleNamespace(_workers=[BaseProcess()]), torch.ones(1)) == nothing
    assert births.figures(None, torch.ones(1)) == nothing


class Custom:
    """A batch class without pin_memory()."""

    def __init__(self, rows: torch.Tensor) -> None:
        self.rows = rows


@pytest.mark.parametrize(
    ("batch", "pinned"),
    [
        ({"x": "pinned", "y": ["pinned"]}, True),
        ({"x": "pinned", "y": ["pageable"]}, False),
        (Custom("pageable"), False),
        (["no tensor"], None),
    ],
)
def test_a_batch_that_was_to_be_pinned(batch: object, pinned: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(batch: object):
        parts = {"pinned": True, "pageable": False}
        for name in str(vars(batch) if isinstance(batch, Custom) else batch).split("'"):
            if name in parts:
                yield SimpleNamespace(is_cpu=True, is_pinned=lambda name=name: parts[name])
        yield SimpleNamespace(is_cpu=False, is_pinned=lambda: pytest.fail("a device tensor was asked"))

    monkeypatch.setattr(births, "tensors_of", found)
    told = births.figures(SimpleNamespace(_pin_memory=True), batch)
    assert told["batch_pinned"] is pinned


def test_tensors_inside_a_custom_class_are_looked_at() -> None:
    told = births.figures(SimpleNamespace(_pin_memory=True), Custom(torch.ones(2)))
    assert told["batch_pinned"] is False
