"""Loops that a framework runs are swept in live launches, and come to the same as without us."""

from __future__ import annotations

import pytest

from pindiag.model import DatasetChanged, LoaderChosen, LoaderMade

from ..integration.loops import (
    assert_all_the_same,
    assert_swept,
    assert_swept_without_end,
    results,
    swept,
    workers,
)
from ..integration.probe_harness import TARGETS

pytestmark = pytest.mark.frameworks

FRAMEWORKS = TARGETS / "frameworks"


MAKERS = {"lightning": None, "accelerate": None, "transformers": "transformers.trainer"}
"""Who makes the training loader: a loader of the script's own stays its own where a framework makes it again."""


@pytest.mark.parametrize("name", MAKERS)
def test_a_loop_is_swept_and_comes_to_the_same(tmp_path, name):
    result = assert_all_the_same(tmp_path, FRAMEWORKS / f"with_{name}.py", blocks=workers(2, 0))
    chosen = result.one(LoaderChosen)
    assert {made.maker for made in result.all(LoaderMade) if made.key == chosen.key} == {MAKERS[name]}


@pytest.mark.parametrize("name", ["lightning", "accelerate", "transformers"])
def test_a_loop_is_swept_without_end(tmp_path, name):
    assert_swept_without_end(tmp_path, FRAMEWORKS / f"with_{name}.py", blocks=workers(2, 0))


@pytest.mark.parametrize("number", [0, 1])
def test_a_stateful_loader_is_swept_and_comes_to_the_same(tmp_path, number):
    assert_all_the_same(tmp_path, FRAMEWORKS / "with_torchdata.py", str(number), blocks=workers(2, 0))


@pytest.mark.parametrize("number", [0, 1])
def test_a_stateful_loader_is_swept_without_end(tmp_path, number):
    assert_swept_without_end(tmp_path, FRAMEWORKS / "with_torchdata.py", str(number), blocks=workers(2, 0))


def test_shards_of_webdataset_are_swept_to_the_end(tmp_path):
    """An iterable dataset begins anew with each treatment, so that the rows differ from a run without us."""
    blocks = workers(2, 0)
    result = swept(tmp_path, FRAMEWORKS / "with_webdataset.py", "1", blocks=blocks)
    assert_swept(result, FRAMEWORKS / "with_webdataset.py", blocks)
    assert len(results(result.output)) == 1


def test_shards_of_webdataset_are_swept_without_end(tmp_path):
    result = assert_swept_without_end(tmp_path, FRAMEWORKS / "with_webdataset.py", "0", blocks=workers(1, 2, 0))
    assert not result.all(DatasetChanged)
