from __future__ import annotations

import dataclasses
import json
import os
import sys
import traceback
from pathlib import Path

import pytest
import torch

from pindiag.probe import device, target
from pindiag.probe.batch import describe, leading_dimension
from pindiag.probe.callsite import user_location
from pindiag.probe.loaders import is_place
from pindiag.probe.recorder import Recorder
from pindiag.probe.stop import Stop, Stopper
from tests.unit.spoiled import WAYS, spoil


@dataclasses.dataclass
class Graph:
    nodes: torch.Tensor
    label: str


class Custom:
    def __init__(self):
        self.data = torch.zeros(3, 2)


@pytest.mark.parametrize(
    ("batch", "leading", "size", "tensors"),
    [
        (torch.zeros(4, 2), 4, 32, 1),
        ([torch.zeros(4, 2), torch.zeros(4, dtype=torch.int64)], 4, 64, 2),
        ({"a": {"b": torch.zeros(5, dtype=torch.uint8)}, "name": "x"}, 5, 5, 1),
        ((torch.tensor(1.0), torch.zeros(6)), 6, 28, 2),
        (Graph(torch.zeros(2, 2), "x"), 2, 16, 1),
        (Custom(), 3, 24, 1),
        (["a", "b"], None, 0, 0),
    ],
)
def test_a_batch_is_described_through_its_containers(batch, leading, size, tensors):
    assert leading_dimension(batch) == leading
    facts = describe(batch, 7)
    assert (facts.samples, facts.bytes, facts.tensors) == (7, size, tensors)


def test_the_location_is_the_users_line():
    location = user_location(1)
    assert location.startswith(f"{__file__}:")
    called = []
    torch.utils._pytree.tree_map(lambda _: called.append(user_location(1)), [1])
    assert called[0].startswith(f"{__file__}:")


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("train.py:14", True),
        ("app/train.py:14", True),
        ("/home/me/app/train.py:14", True),
        ("./train.py:14", True),
        ("train.py:15", False),
        ("rain.py:14", False),
    ],
)
def test_a_loader_is_named_by_any_end_of_its_path(place, expected):
    assert is_place("/home/me/app/train.py:14", place) is expected


@pytest.fixture
def pipes(tmp_path):
    (tmp_path / "journal").mkdir()
    child_reads, parent_writes = os.pipe()
    parent_reads, child_writes = os.pipe()
    recorder = Recorder(str(tmp_path), 3, child_reads, child_writes)
    yield recorder, parent_reads, parent_writes, next((tmp_path / "journal").iterdir())
    for fd in (child_reads, child_writes):
        os.close(fd)


def test_records_go_to_the_journal_and_some_over_the_pipe(pipes):
    recorder, reads, writes, journal = pipes
    recorder.write("loader_made", loader=1)
    recorder.write("first_step")
    lines = journal.read_bytes().splitlines(keepends=True)
    assert [json.loads(line)["type"] for line in lines] == ["loader_made", "first_step"]
    assert os.read(reads, 4096) == lines[1]
    assert journal.name == f"launch-003-{os.getpid()}.jsonl"
    os.close(reads)
    os.close(writes)


def test_answers_come_line_by_line(pipes):
    recorder, reads, writes, _ = pipes
    os.write(writes, b'{"then": "profile"}\n{"then": "sto')
    assert recorder.ask() == {"then": "profile"}
    os.write(writes, b'p"}\n')
    assert recorder.ask() == {"then": "stop"}
    os.close(reads)
    os.close(writes)


def test_a_parent_that_is_gone_means_stop(pipes):
    recorder, reads, writes, journal = pipes
    os.close(reads)
    os.close(writes)
    recorder.write("first_step")
    assert recorder.ask() == {"then": "stop"}
    assert b"first_step" in journal.read_bytes()


def test_stop_passes_except_exception():
    stopper = Stopper(lambda: None)
    stopper.check()
    stopper.stopping = True
    with pytest.raises(Stop):
        try:
            stopper.check()
        except Exception:
            pytest.fail("an except Exception must not swallow it")


def compiled(source, name):
    names = {}
    exec(compile(source, name, "exec"), names)
    return names


def test_our_frames_are_taken_out_of_every_chained_traceback():
    own = compiled("def through(call):\n    call()\n", target.PROBE_FOLDER + "session.py")

    def first():
        raise KeyError("first")

    def second():
        try:
            own["through"](first)
        except KeyError as error:
            raise ValueError("second") from error

    with pytest.raises(ValueError, match="second") as caught:
        own["through"](second)
    target.strip(caught.value)
    names = [
        frame.name
        for one in (caught.value, caught.value.__cause__)
        for frame in traceback.extract_tb(one.__traceback__)
    ]
    assert "through" not in names
    assert names[-2:] == ["second", "first"]


@pytest.mark.parametrize(("code", "status"), [(None, 0), (0, 0), (7, 7), ("text", 1), (True, 1)])
def test_exit_status_is_that_of_python(code, status):
    assert target.exit_status(SystemExit(code)) == status


def test_the_excepthook_of_the_target_sees_its_own_frames_only(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: seen.append((kind, trace, sys.excepthook)))
    monkeypatch.setattr(sys, "last_traceback", None, raising=False)
    theirs = sys.excepthook
    target.hide_our_frames()
    own = compiled("def through():\n    raise ValueError\n", target.PROBE_FOLDER + "session.py")
    try:
        own["through"]()
    except ValueError as error:
        sys.excepthook(type(error), error, error.__traceback__)
    ((kind, trace, hook),) = seen
    assert (kind, hook) == (ValueError, theirs)
    assert [frame.name for frame in traceback.extract_tb(trace)] == [sys._getframe().f_code.co_name]


@pytest.mark.parametrize("way", WAYS)
def test_threads_are_not_told_where_the_libraries_are_not(monkeypatch, tmp_path, way):
    torch.ones(2)
    spoil(monkeypatch, tmp_path, Path("/proc/self/maps"), way)
    assert device.intraop_threads() is None
