"""Large containers of Python objects, found without the target's code; and where its functions stand."""

from __future__ import annotations

import functools

from torch.utils.data import default_collate

from pindiag.probe import objects

MANY = objects.LARGE


class Holder:
    def __init__(self, **held):
        self.__dict__.update(held)


class Guarded(list):
    def __len__(self):
        raise AssertionError("the target's own code was called")

    __iter__ = __len__


def test_large_containers_are_found_where_they_are():
    found = objects.objects_of(dataset=Holder(records=[{"a": "1"}] * MANY, index=dict.fromkeys(range(MANY), 0.5)))
    assert {(one.place, one.kind, one.items, one.of) for one in found} == {
        ("dataset.records", "list", MANY, "dict"),
        ("dataset.index", "dict", MANY, "float"),
    }


def test_one_that_is_held_twice_counts_once():
    names = ("x",) * MANY
    assert len(objects.objects_of(dataset=Holder(one=names, other=names))) == 1


def test_small_ones_and_tensors_are_left_out():
    assert objects.objects_of(dataset=Holder(few=[1] * (MANY - 1), text="x" * MANY)) == []


def test_a_subclass_is_not_asked():
    [found] = objects.objects_of(dataset=Holder(own=Guarded([b""] * MANY)))
    assert (found.kind, found.items, found.of) == ("list", MANY, "bytes")


def collate(batch):
    return batch


class Collate:
    def __call__(self, batch):
        return batch

    def method(self, batch):
        return batch


def line_of(function):
    return f"{__file__}:{function.__code__.co_firstlineno}"


def test_places_of_functions():
    assert objects.place_of(collate) == line_of(collate)
    assert objects.place_of(functools.partial(functools.partial(collate))) == line_of(collate)
    assert objects.place_of(Collate()) == line_of(Collate.__call__)
    assert objects.place_of(Collate().method) == line_of(Collate.method)


def test_a_library_s_own_has_no_place():
    assert objects.place_of(default_collate) is None
    assert objects.place_of(list) is None
    assert objects.place_of(None) is None
