"""Loaders that do not train: whole passages, broken off ones, and those beside the training loader."""

from __future__ import annotations

import pytest

from pindiag.model import Block, LoaderChosen, LoaderMade, LoaderSeen

from .probe_harness import TARGETS, Result, key, launch, order

pytestmark = pytest.mark.integration

STYLES = TARGETS / "styles.py"


def others(result: Result) -> list[LoaderSeen]:
    """Passages through loaders other than the training one."""
    made = {record.loader: record.key for record in result.all(LoaderMade)}
    chosen = result.one(LoaderChosen).key
    assert any(key != chosen for key in made.values())
    return [seen for seen in result.all(LoaderSeen) if made[seen.loader] != chosen]


def test_validation_is_seen_whole_where_epochs_end(tmp_path):
    result = launch(tmp_path, STYLES, "with_validation", natural_epochs=True, blocks=[order(steps=60)])
    assert result.one(Block).status == "counted"
    seen = others(result)
    assert len(seen) >= 2
    for one in seen:
        assert (one.batches, one.whole) == (4, True)
        assert 32 <= one.wait_ms <= one.seconds * 1e3


def test_in_a_launch_that_was_told_its_loader_too(tmp_path):
    named = key(STYLES, "train = DataLoader(Rows(), batch_size=8, shuffle=True)")
    result = launch(tmp_path, STYLES, "with_validation", natural_epochs=True, blocks=[order(steps=60)], loader=named)
    assert all((one.batches, one.whole) == (4, True) for one in others(result))
    assert len(others(result)) >= 2


def test_a_look_at_the_validation_before_training_is_no_whole_passage(tmp_path):
    (seen,) = others(launch(tmp_path, STYLES, "validation_first"))
    assert (seen.batches, seen.whole) == (2, False)


def test_the_other_loader_of_a_zip_is_seen_beside_the_training_one(tmp_path):
    few = order(steps=8, settle_steps=2, seconds=0)  # fewer than the 20 batches that one passage gives
    result = launch(tmp_path, STYLES, "zipped", blocks=[few])
    (seen,) = others(result)
    assert seen.batches >= result.one(Block).steps
    assert not seen.whole
    assert 0 < seen.wait_ms < seen.seconds * 1e3
