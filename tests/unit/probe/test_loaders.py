from __future__ import annotations

import sys

import pytest

from pindiag.probe import loaders
from pindiag.probe.loaders import made_by_user

LIBRARY = "/library/module.py"
USER = "/work/train.py"


class Made:
    def __init__(self):
        self.by_user = made_by_user(self, sys._getframe(0))


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


def test_a_constructor_of_something_else_is_a_caller():
    source = "class Trainer:\n    def __init__(self):\n        self.made = Made()"
    trainer = in_file(source, LIBRARY, Made=Made, __name__="library")["Trainer"]
    assert not in_file("trainer = Trainer()", USER, Trainer=trainer)["trainer"].made.by_user
