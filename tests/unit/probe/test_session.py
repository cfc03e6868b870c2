from __future__ import annotations

import errno
import os
import time
from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

from pindiag.probe import loader
from pindiag.probe.session import Session, raised_by_loader, ran_out_of_files
from pindiag.probe.stop import Stop
from pindiag.probe.watch import Made


class Broken(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        raise LookupError(index)


def raised(call):
    with pytest.raises(Exception) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("workers", [0, 1])
def test_what_a_dataset_raises_comes_from_its_loader(workers):
    assert raised_by_loader(raised(lambda: next(iter(DataLoader(Broken(), num_workers=workers)))))


def test_an_exception_in_place_of_the_loaders_comes_from_it_too():
    def wrapped():
        try:
            next(iter(DataLoader(Broken())))
        except LookupError as error:
            raise RuntimeError("training failed") from error

    assert raised_by_loader(raised(wrapped))


def test_what_the_step_raises_does_not():
    def step():
        for batch in DataLoader(torch.zeros(4)):
            batch.reshape(7)

    assert not raised_by_loader(raised(step))


@pytest.mark.parametrize(
    ("error", "out"),
    [
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), True),
        (RuntimeError("Too many open files. Communication with the workers is no longer possible."), True),
        (RuntimeError("received 0 items of ancdata"), True),
        (OSError(errno.ENOENT, os.strerror(errno.ENOENT)), False),
    ],
)
def test_what_ran_out_of_descriptors_is_told_also_behind_another_error(error, out):
    def wrapped():
        try:
            raise error
        except Exception as inner:
            raise RuntimeError("training failed") from inner

    assert ran_out_of_files(error) == ran_out_of_files(raised(wrapped)) == out


@pytest.mark.parametrize(("past", "says"), [(True, True), (False, False)])
def test_past_its_natural_end_even_the_loader_may_run_out_of_descriptors_for_it(past, says):
    session = object.__new__(Session)
    session.serving = SimpleNamespace(last=SimpleNamespace(past_natural_end=past))
    broken = raised(lambda: next(iter(DataLoader(Broken()))))
    assert not session.is_past_natural_end(broken)
    broken.__cause__ = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    assert session.is_past_natural_end(broken) == says


class Rows(Dataset):
    """Rows of which one cannot be read at first."""

    broken = None

    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        if index == self.broken:
            self.broken = None
            raise LookupError(index)
        return torch.tensor(index)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(100))


class Records:
    """Keeps records, and has no orders after the first block."""

    def __init__(self):
        self.kept = []

    def write(self, kind, **fields):
        self.kept.append((kind, fields))

    def ask(self):
        return {"then": "stop"}


class Driven:
    """A session whose hooks are called by hand, from its first counted block on."""

    def __init__(self, dataset, steps):
        order = {"block": 1, "round": 1, "trial": "t", "seconds": 1e-9, "steps": steps, "settle_steps": 2}
        spec = {"loader": None, "loader_place": "train.py:1", "treatment": None, "natural_epochs": False}
        self.records = Records()
        stopper = SimpleNamespace(stopping=False, check=lambda: None, begin=self.stop)
        self.session = Session({**spec, "blocks": [order]}, self.records, stopper)
        self.session.serving.serve(DataLoader(dataset, batch_size=5), Made(0, "train.py:1", 0, ()))
        self.watch = self.session.serving.running
        self.next()
        self.session._training.begin()
        self.session._stepping = True
        self.quick = 0

    def stop(self):
        raise Stop

    def next(self):
        """What the hook of an iterator's `__next__` does."""
        if self.watch.granted:
            self.quick += 1
            return self.session.serve_quickly(self.watch)
        return self.session.serve_next(self.watch)

    def until_stopped(self):
        given = []
        with pytest.raises(Stop):
            while True:
                given.append(self.next().tolist())
                self.session.before_optimizer()
                self.session.after_optimizer()
        return given

    @property
    def block(self):
        return next(fields for kind, fields in self.records.kept if kind == "block")


@pytest.fixture
def driven(monkeypatch):
    monkeypatch.setitem(loader.ITERATIONS, DataLoader, DataLoader.__iter__)
    return Driven


def test_steps_in_which_nothing_is_due_are_counted_all_the_same(driven):
    loop = driven(torch.arange(10_000), steps=400)
    given = loop.until_stopped()
    assert loop.quick > 300, "about seven of eight"
    assert given == torch.arange(5, 2015).reshape(-1, 5).tolist(), "two that settle, and those that count"
    block = loop.block
    assert (block["steps"], block["samples"], len(block["step_ms"])) == (400, 2000, 400)
    assert block["looked_at_steps"] == 400 - loop.quick
    assert sum(block["step_ms"]) == pytest.approx(1e3 * block["seconds"], rel=0.01)
    assert 0 < block["wait_cpu_ms"] <= block["wait_ms"] < sum(block["step_ms"])
    assert 0 < block["optimizer_ms"] < sum(block["step_ms"])
    assert 0 < block["probe_us_per_step"]
    assert loop.session.steps == len(given)


def test_what_a_dataset_raises_in_such_a_step_is_the_scripts_and_the_loop_may_go_on(driven):
    rows = Rows()
    loop = driven(rows, steps=150)
    while not loop.watch.granted:
        loop.next()
    rows.broken = failed = 5 * loop.watch.delivered
    with pytest.raises(LookupError, match=str(failed)) as caught:
        loop.next()
    assert raised_by_loader(caught.value)
    assert loop.watch.granted == 0
    assert loop.until_stopped()[0][0] == failed + 5
    assert loop.watch.stream._out == {}, "the batch that failed is done with"


def test_a_stream_that_ends_in_such_a_step_begins_again(driven):
    loop = driven(Stream(), steps=30)
    given = loop.until_stopped()
    assert [0, 1, 2, 3, 4] in given
    assert loop.watch.restarts == 1
    assert loop.block["steps"] == 30


def test_a_loop_that_leaves_its_loader_takes_back_what_was_granted(driven):
    loop = driven(torch.arange(10_000), steps=100)
    while not loop.watch.granted:
        loop.next()
    loop.session._training.gap(time.monotonic_ns(), over=False)
    assert loop.watch.granted == 0
    loop.until_stopped()
    assert loop.block["steps"] == 100
