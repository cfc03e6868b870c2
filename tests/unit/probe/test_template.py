from __future__ import annotations

import dataclasses
from collections import OrderedDict, UserDict, UserList, namedtuple
from types import MappingProxyType

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from pindiag.probe.batch import tensors_of
from pindiag.probe.template import Template

Pair = namedtuple("Pair", "x y")


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: torch.Tensor
    names: list


@dataclasses.dataclass(slots=True)
class Slotted:
    x: torch.Tensor
    y: torch.Tensor


class Encoding(UserDict):
    """As transformers' BatchEncoding: names of entries are attributes too."""

    def __init__(self, data, encodings):
        super().__init__(data)
        self._encodings = encodings

    def __getattr__(self, name):
        try:
            return self.data[name]
        except KeyError:
            raise AttributeError(name) from None


class Store:
    def __init__(self, **values):
        self.__dict__["_store"] = values

    def __setattr__(self, name, value):
        self._store[name] = value


class Listed(list):
    pass


def one(value=1.0):
    return torch.full((2, 3), value)


BATCHES = {
    "tensor": lambda: one(),
    "list": lambda: [one(), one()],
    "tuple": lambda: (one(), ["a", "b"], one()),
    "dict": lambda: {"x": one(), "y": {"z": [one()]}, "n": 3},
    "ordered dict": lambda: OrderedDict(x=one(), y=one()),
    "read-only mapping": lambda: MappingProxyType({"x": one()}),
    "named tuple": lambda: Pair(one(), one()),
    "frozen dataclass": lambda: Frozen(one(), ["a"]),
    "dataclass with slots": lambda: Slotted(one(), one()),
    "encoding": lambda: Encoding({"input_ids": one(), "mask": one()}, encodings=[object()]),
    "user list": lambda: UserList([one(), one()]),
    "list subclass": lambda: Listed([one(), "a"]),
    "object with setters of its own": lambda: Store(x=one(), y=[one()]),
    "packed sequence": lambda: pack_sequence([torch.ones(3), torch.ones(2)]),
}


@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_is_put_together_around_other_tensors(name):
    batch = BATCHES[name]()
    template = Template(batch)
    own = list(tensors_of(batch))
    assert [id(tensor) for tensor in template.tensors] == [id(tensor) for tensor in own]
    others = [tensor.clone() for tensor in own]
    first, second = template.build(others), template.build(others)
    assert type(first) is type(batch)
    assert [id(tensor) for tensor in tensors_of(first)] == [id(tensor) for tensor in others]
    assert [id(tensor) for tensor in tensors_of(batch)] == [id(tensor) for tensor in own]
    assert first is not second or isinstance(batch, torch.Tensor)


def test_what_the_script_does_to_a_container_is_not_seen_again():
    template = Template({"x": one(), "targets": [{"boxes": one()}], "names": ["a", "b"]})
    first = template.build(template.tensors)
    first.pop("x")
    first["targets"][0].clear()
    first["names"].pop()
    second = template.build(template.tensors)
    assert list(second) == ["x", "targets", "names"]
    assert list(second["targets"][0]) == ["boxes"]
    assert second["names"] == ["a", "b"]


def test_what_holds_no_tensor_is_shared():
    tool, size = Store(name="tokenizer"), torch.Size([2, 3])
    batch = {"tool": tool, "size": size, "settings": OrderedDict(a=1), "x": one()}
    again = Template(batch).build([one()])
    assert all(again[name] is batch[name] for name in ("tool", "size", "settings"))


def test_a_tensor_that_is_met_twice_stays_one():
    ids = one()
    template = Template({"input_ids": ids, "labels": ids})
    again = template.build([ids.clone()])
    assert again["labels"] is again["input_ids"]
    assert template.paths == [("input_ids",)]


def test_paths_name_the_place_in_the_batch():
    assert Template(({"x": one()}, Frozen(one(), []))).paths == [(0, "x"), (1, "x")]


def test_a_class_inside_a_batch_is_left_alone():
    class Holder:
        x = one()

    assert Template([Holder]).build([]) == [Holder]


def test_a_batch_that_refers_to_itself_ends():
    batch = [one()]
    batch.append(batch)
    assert len(Template(batch).tensors) == 1
