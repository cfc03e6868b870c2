from __future__ import annotations

import functools
import pathlib
import random
from collections import OrderedDict, deque

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, Subset, TensorDataset

from pindiag.probe.dataset_state import PARTS, first_difference, read


class Plain:
    """A dataset that stays as it is, however often it is asked."""

    def __init__(self):
        self.files = [pathlib.Path(f"/data/{number}") for number in range(500)]
        self.labels = torch.arange(500)
        self.table = np.arange(500)
        self.options = {"size": 64, "names": ("a", "b")}
        self.itself = self

    def __getitem__(self, index):
        return str(self.files[index]), self.labels[index], self.table[index], self.options["size"]


class Remembering:
    def __init__(self):
        self.made = {}

    def __getitem__(self, index):
        return self.made.setdefault(index, torch.zeros(2))


class Counting:
    served = 0

    def __getitem__(self, index):
        self.served += 1
        return index


class ClassWide:
    seen: list[int] = []

    def __getitem__(self, index):
        self.seen.append(index)


class Slotted:
    __slots__ = ("handle", "unset")

    def __init__(self):
        self.handle = None

    def __getitem__(self, index):
        self.handle = self.handle or object()


class Cached:
    @functools.cache  # noqa: B019
    def load(self, index):
        return index

    def __getitem__(self, index):
        return self.load(index)


@functools.lru_cache
def load_file(index):
    return index


def load(index):
    return load_file(index)


class CachedOutside:
    def __getitem__(self, index):
        return load(index)


class Lazy:
    @functools.cached_property
    def table(self):
        return [1]

    def __getitem__(self, index):
        return self.table


class DefaultArgument:
    def __getitem__(self, index, known={}):  # noqa: B006
        known[index] = index


class Drawing:
    def __init__(self, generator):
        self.generator = generator

    def __getitem__(self, index):
        generator = self.generator
        return torch.rand(1, generator=generator) if isinstance(generator, torch.Generator) else generator.random()


class Filling:
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, index):
        self.rows[index] = 7


class Streaming:
    def __init__(self):
        self.lines = (number for number in range(100))

    def __getitem__(self, index):
        return next(self.lines)


def deep():
    found = Remembering()
    return ConcatDataset([Subset(found, [0, 1]), Subset(found, [2, 3])])


def served(dataset):
    before = read(dataset)
    for index in range(3):
        dataset[index]
    return first_difference(before, read(dataset))


@pytest.mark.parametrize(
    "dataset",
    [
        Plain(),
        TensorDataset(torch.zeros(5, 2), torch.zeros(5)),
        Subset(Plain(), [4, 3, 2]),
        [1, 2, 3],
        torch.zeros(4),
    ],
)
def test_a_dataset_that_stays_as_it_is_is_not_changed(dataset):
    assert served(dataset) is None


@pytest.mark.parametrize(
    ("dataset", "what"),
    [
        (Remembering(), "made: 0 entries before, 3 entries after"),
        (Counting(), "served: 0 before, 3 after"),
        (ClassWide(), "seen: 0 entries before, 3 entries after"),
        (Slotted(), "handle: None before, a object after"),
        (Cached(), "load: a _lru_cache_wrapper, not the same before and after"),
        (CachedOutside(), "__getitem__ load load_file: a _lru_cache_wrapper, not the same before and after"),
        (Lazy(), "table: nothing before, 1 entry after"),
        (DefaultArgument(), "__getitem__(known): 0 entries before, 3 entries after"),
        (Drawing(random.Random(1)), "generator: a Random, not the same before and after"),
        (Drawing(torch.Generator()), "generator: a Generator, not the same before and after"),
        (Drawing(np.random.default_rng(1)), "generator: a Generator, not the same before and after"),
        (Drawing(np.random.RandomState(1)), "generator: a RandomState, not the same before and after"),
        (Filling(torch.zeros(4)), "rows: a tensor of shape (4,), not the same before and after"),
        (Filling(np.zeros(4)), "rows: a ndarray, not the same before and after"),
        (Filling([1, 2, 3]), "rows[0]: 1 before, 7 after"),
        (Filling(OrderedDict()), "rows: 0 entries before, 3 entries after"),
        (Streaming(), "lines: a generator, not the same before and after"),
        (deep(), "datasets[0].dataset.made: 0 entries before, 3 entries after"),
    ],
)
def test_whatever_a_dataset_keeps_of_serving_is_a_change(dataset, what):
    assert served(dataset) == what


def test_no_code_of_the_targets_is_called():
    class Touchy(dict):
        @property
        def __dict__(self):
            raise AssertionError

        def _refuse(self, *_):
            raise AssertionError

        __len__ = __iter__ = __getitem__ = __repr__ = __eq__ = __hash__ = items = keys = _refuse

        @property
        def rows(self):
            raise AssertionError

        def __getattr__(self, name):
            raise AssertionError

    class TouchyList(list):
        def _refuse(self, *_):
            raise AssertionError

        __len__ = __iter__ = __getitem__ = __repr__ = __eq__ = __hash__ = _refuse

    class TouchyTensor(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *_args, **_kwargs):
            raise AssertionError

    holder = Plain()
    holder.touchy = [
        Touchy(a=1),
        TouchyList([1]),
        torch.Tensor._make_subclass(TouchyTensor, torch.zeros(2)),
        deque([1]),
    ]
    assert first_difference(read(holder), read(holder)) is None


def test_the_look_is_bounded():
    wide = Plain()
    for number in range(50):
        setattr(wide, f"nested{number}", [[{"rows": [{}] * 100}] * 100] * 100)
    endless = Plain()
    endless.more = [Plain() for _ in range(100)]
    for dataset in (wide, endless):
        assert len(read(dataset)) <= PARTS


def test_what_is_inside_inference_tensors_is_left_alone():
    holder = Plain()
    with torch.inference_mode():
        holder.rows = torch.zeros(3)
    assert first_difference(read(holder), read(holder)) is None
