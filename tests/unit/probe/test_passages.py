from __future__ import annotations

import pytest

from pindiag.probe import passages
from pindiag.probe.passages import LONGEST_LIST, Passages


class Recorder:
    def __init__(self):
        self.written = []

    def write(self, kind, **fields):
        self.written.append((kind, fields))


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        ns = 0

    monkeypatch.setattr(passages, "_now", lambda: Clock.ns)
    return Clock


def test_a_whole_passage_and_one_that_is_left(clock):
    recorder = Recorder()
    found = Passages(recorder, iter((3, 3, 7, 9)).__next__)
    clock.ns = 1_000_000
    whole, left = found.begin(1, 5, began_ns=0), found.begin(2, 6, began_ns=0)
    for passage in (whole, whole, left):
        clock.ns += 3_000_000
        passage.took(2_000_000)
    clock.ns += 500_000_000
    found.exhausted(5)
    found.exhausted(5)
    found.say_rest()
    found.say_rest()
    assert recorder.written == [
        (
            "loader_seen",
            {
                "loader": 1,
                "iterator": 5,
                "batches": 2,
                "wait_ms": 5.0,
                "seconds": 0.51,
                "whole": True,
                "training_batches": 4,
            },
        ),
        (
            "loader_seen",
            {
                "loader": 2,
                "iterator": 6,
                "batches": 1,
                "wait_ms": 3.0,
                "seconds": 0.01,
                "whole": False,
                "training_batches": 6,
            },
        ),
    ]


def test_what_trains_is_none(clock):
    recorder = Recorder()
    found = Passages(recorder, lambda: 0)
    found.begin(1, 0, began_ns=0)
    found.forget(0)
    found.exhausted(0)
    found.say_rest()
    assert recorder.written == []


def test_a_loop_of_loaders_fills_no_disk(clock):
    recorder = Recorder()
    found = Passages(recorder, lambda: 0)
    for iterator in range(LONGEST_LIST + 10):
        found.begin(1, iterator, began_ns=0).took(1)
        found.exhausted(iterator)
    assert len(recorder.written) == LONGEST_LIST
