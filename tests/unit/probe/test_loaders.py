from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from torch.utils.data import DataLoader

from pindiag.probe import loaders
from pindiag.probe.loaders import Loaders, calling

LIBRARY = "/library/module.py"
USER = "/project/train.py"


class Made:
    def __init__(self):
        self.by_user = calling(self, sys._getframe(0)).f_code.co_filename == USER


def in_file(source, file, **names):
    exec(compile(source, file, "exec"), names)
    return names


@pytest.fixture(autouse=True)
def _library(monkeypatch):
    monkeypatch.setattr(loaders, "is_user_code", lambda code: code.co_filename != LIBRARY)


def test_what_the_script_calls_for_is_its_own():
    assert in_file("made = Made()", USER, Made=Made)["made"].by_user
    assert not in_file("made = Made()", LIBRARY, Made=Made)["made"].by_user


def test_constructors_of_its_classes_are_passed_over():
    source = "class Kind(Base):\n    def __init__(self):\n        super().__init__()"
    kind = in_file(source, LIBRARY, Base=Made, __name__="library")["Kind"]
    assert in_file("made = Kind()", USER, Kind=kind)["made"].by_user


def test_what_a_library_puts_around_a_constructor_is_passed_over():
    """As Lightning does, to make a loader again later."""
    source = "init = Base.__init__\ndef wrapper(obj, *args):\n    init(obj, *args)"
    names = in_file(source, LIBRARY, Base=Made)
    wrapped = type("Wrapped", (Made,), {"__init__": names["wrapper"]})
    assert in_file("made = Wrapped()", USER, Wrapped=wrapped)["made"].by_user


def test_a_constructor_of_something_else_is_a_caller():
    source = "class Trainer:\n    def __init__(self):\n        self.made = Made()"
    trainer = in_file(source, LIBRARY, Made=Made, __name__="library")["Trainer"]
    assert not in_file("trainer = Trainer()", USER, Trainer=trainer)["trainer"].made.by_user


class Asked:
    """Stands where a hooked loader's constructor stands: the session asks for its origin."""

    def __init__(self, loaders, dataset):
        self.loader = DataLoader(dataset)
        self.origin = origin_as_the_session_asks(loaders, self, dataset)
        loaders.made(self.loader, self.origin, 0)


def origin_as_the_session_asks(loaders, new, dataset):
    return loaders.origin_of(new, dataset)


@pytest.fixture
def known(monkeypatch):
    records = []
    recorder = SimpleNamespace(write=lambda kind, **fields: records.append(fields))
    return Loaders({"loader": None, "loader_place": None}, recorder), records


def test_a_loader_that_a_library_makes_names_the_module(known):
    loaders, records = known
    made = in_file("made = Asked(loaders, [1, 2])", LIBRARY, Asked=Asked, loaders=loaders, __name__="library.trainer")
    assert made["made"].origin.maker == "library.trainer"
    assert records[0]["maker"] == "library.trainer"


def test_one_that_the_script_makes_names_nobody(known):
    loaders, records = known
    in_file("made = Asked(loaders, [1, 2])", USER, Asked=Asked, loaders=loaders, __name__="__main__")
    assert records[0]["maker"] is None


def test_one_that_a_library_makes_again_keeps_the_maker_of_the_first(known):
    """As Accelerate does with the loader that a trainer made, or with one of the script."""
    loaders, records = known
    data, more = [1, 2], [3]
    names = {"Asked": Asked, "loaders": loaders, "data": data, "more": more}
    kept = [
        in_file("made = Asked(loaders, data)", USER, **names, __name__="__main__"),
        in_file("made = Asked(loaders, more)", LIBRARY, **names, __name__="library.trainer"),
        in_file("made = Asked(loaders, data), Asked(loaders, more)", LIBRARY, **names, __name__="library.prepare"),
    ]
    assert len(kept) == 3
    assert [record["maker"] for record in records] == [None, "library.trainer", None, "library.trainer"]


def test_where_a_copy_was_made_is_not_known(known):
    """It is first seen where the script iterates over it, which tells nothing of how often it is made."""
    loaders, _ = known
    assert loaders.made_of(DataLoader([1, 2])).stack == ()
