"""Live launches: many treatments in one process, behind one loop that is not to notice."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pindiag.model import Block, LoaderIterated, TargetEnded

from .probe_harness import TARGETS, launch, then, under

pytestmark = pytest.mark.integration

INDICES = TARGETS / "indices.py"
PLAIN = TARGETS / "plain.py"
MADE = "loader = DataLoader("

MIXED = [
    under(2, "nw2", num_workers=2),
    under(3, "nw0", num_workers=0),
    under(4, "nw2", num_workers=2),
    under(5, "nw2", num_workers=2),
    under(6, "nw1-pf4", num_workers=1, prefetch_factor=4),
    under(7, "as-written"),
]


def live(tmp_path, target, *args, blocks=MIXED, **changes):
    answers = [then(block) for block in blocks]
    return launch(tmp_path, target, *args, isolation="live", answers=answers, **changes)


def as_without_us(tmp_path, style, workers, epochs):
    path = tmp_path / "without.txt"
    subprocess.run([sys.executable, INDICES, style, str(workers), str(epochs), path], check=True)
    return path.read_text().splitlines()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("style", ["plain", "distributed_by_count"])
def test_the_script_gets_the_batches_of_its_sampler(tmp_path, style, workers):
    path = tmp_path / "with.txt"
    result = live(tmp_path, INDICES, style, str(workers), "200", str(path), blocks=MIXED)
    assert [block.status for block in result.all(Block)] == ["counted"] * 7, result.output
    got = path.read_text().splitlines()
    assert result.output == ""
    assert got == as_without_us(tmp_path, style, workers, 1 + len(got) // 10)[: len(got)]
    assert [record.trial for record in result.all(LoaderIterated)] == [None, *(block.trial for block in MIXED)]
    assert result.one(TargetEnded).how == "stopped"
