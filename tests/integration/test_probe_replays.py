"""Batches replayed from a device and from the host, and waits answered lazily, on a device that is pretended."""

from __future__ import annotations

import pytest

from pindiag.model import Block, TargetEnded
from pindiag.probe.replay import CHANGED_IN_PLACE

from .probe_harness import TARGETS, launch, then, under

pytestmark = pytest.mark.integration

ELSEWHERE = TARGETS / "elsewhere.py"
TREATMENTS = [
    under(2, "compute_only", "ablation"),
    under(3, "host_batch-pin1-nb0", "ablation", pin_memory=True, non_blocking=False),
    under(4, "host_batch-pin0-nb1", "ablation", pin_memory=False, non_blocking=True),
    under(5, "as-written+lazy_sync", "tweak", lazy_sync=True),
    under(6, "as-written"),
]
BYTES = 8 * 8 * 4
LOSS_BYTES = 4


def blocks_of(tmp_path, *args):
    result = launch(tmp_path, ELSEWHERE, *args, isolation="live", answers=[then(block) for block in TREATMENTS])
    assert result.output == ""
    assert result.one(TargetEnded).how == "stopped"
    blocks = result.all(Block)
    assert [block.status for block in blocks] == ["counted"] * 6
    return {block.trial: block for block in blocks[1:]}


def place_of(text):
    line = next(number for number, line in enumerate(ELSEWHERE.read_text().splitlines(), 1) if text in line)
    return f"{ELSEWHERE}:{line}"


def moved_bytes(block):
    return sum(site.bytes for site in block.transfers) / block.steps


@pytest.mark.parametrize("workers", ["0", "2"])
def test_stages_and_waits_are_removed_and_come_back(tmp_path, workers):
    blocks = blocks_of(tmp_path, workers)
    assert moved_bytes(blocks["compute_only"]) == LOSS_BYTES, "the batch lies there already"
    for trial in ("host_batch-pin1-nb0", "host_batch-pin0-nb1", "as-written+lazy_sync", "as-written"):
        assert moved_bytes(blocks[trial]) == BYTES + LOSS_BYTES
    for trial in ("compute_only", "host_batch-pin1-nb0", "host_batch-pin0-nb1"):
        assert blocks[trial].wait_ms == 0
    assert blocks["as-written"].wait_ms > 0
    assert all(site.non_blocking_calls == site.calls for site in blocks["host_batch-pin0-nb1"].transfers)
    assert all(block.notes == [] for block in blocks.values())
    for trial, block in blocks.items():
        (site,) = block.syncs
        assert (site.location, site.kind, site.calls) == (place_of("the step's loss"), "item", block.steps)
        assert site.lazy_calls == (block.steps if trial == "as-written+lazy_sync" else 0)
    for trial in ("as-written+lazy_sync", "as-written"):
        told = blocks[trial].starvation
        assert told.sampled_steps == blocks[trial].steps - 1, "all but the first, which meets a device that ran dry"
        assert told.starved_ms == pytest.approx(told.wait_ms), "it had nothing to do, and waited as long as the script"
        assert 0 < told.wait_ms < blocks[trial].wait_ms
    for trial in ("compute_only", "host_batch-pin1-nb0", "host_batch-pin0-nb1"):
        assert blocks[trial].starvation is None
        assert blocks[trial].missing["starvation"] == "its batches were replayed, not loaded"


def test_a_batch_that_the_script_changes_on_the_device_is_replayed_as_it_was(tmp_path):
    blocks = blocks_of(tmp_path, "0", "in_place")
    assert blocks["compute_only"].notes == [CHANGED_IN_PLACE]
    assert moved_bytes(blocks["compute_only"]) == LOSS_BYTES
    assert blocks["host_batch-pin0-nb1"].notes == []
