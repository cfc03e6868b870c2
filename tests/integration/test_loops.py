"""Scripts as people write them are swept in live launches, and come to the same as without us."""

from __future__ import annotations

import re
import sys

import pytest

from pindiag.model import Block, LoaderIterated, TargetEnded

from .loops import assert_all_the_same, assert_swept, assert_swept_without_end, plain, results, swept, workers
from .probe_harness import TARGETS, under

pytestmark = pytest.mark.integration

LOOPS = TARGETS / "loops"


@pytest.mark.parametrize("name", ["reference", "compiled", "amp", "gan", "lbfgs", "nested", "counted", "checkpoints"])
def test_a_loop_is_swept_and_comes_to_the_same(tmp_path, name):
    assert_all_the_same(tmp_path, LOOPS / f"{name}.py", blocks=workers(2, 0))


def test_ddp_with_a_distributed_sampler_and_no_batch_size(tmp_path):
    assert_all_the_same(tmp_path, LOOPS / "distributed.py", blocks=workers(1, 0))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_start_as_the_script_says(tmp_path, method):
    result = assert_all_the_same(tmp_path, LOOPS / "start_method.py", method, blocks=workers(2))
    assert {record.start_method for record in result.all(LoaderIterated)} == {method}


@pytest.mark.parametrize("name", ["reference", "compiled"])
def test_a_loop_is_swept_without_end(tmp_path, name):
    assert_swept_without_end(tmp_path, LOOPS / f"{name}.py", blocks=workers(2, 0))


def test_an_endless_dataset_of_shared_rows_goes_on_over_workers(tmp_path):
    """Each worker begins its rows anew, so that the rows differ and nothing else."""
    result = swept(tmp_path, LOOPS / "endless.py", blocks=workers(2, 1))
    assert_swept(result, LOOPS / "endless.py", workers(2, 1))
    assert len(results(result.output)) == 1
    assert result.one(TargetEnded).how == "finished"


def test_a_batch_class_of_its_own_keeps_its_pinning_and_its_tensors(tmp_path):
    assert_all_the_same(tmp_path, LOOPS / "own_batch.py", blocks=workers(2, 0))


def test_batches_of_a_class_of_its_own_are_replayed(tmp_path):
    replays = under(2, "host_batch-pin0-nb0", "ablation", pin_memory=False, non_blocking=False)
    blocks = [replays, under(3, "nw0", num_workers=0)]
    result = swept(tmp_path, LOOPS / "own_batch.py", blocks=blocks, natural=False)
    assert [block.status for block in result.all(Block)] == ["counted"] * 3
    assert "Traceback" not in result.output


def test_a_process_that_the_script_set_up_by_itself_is_left_as_it_is(tmp_path):
    script = LOOPS / "host.py"
    blocks = workers(2, 0)
    result = swept(tmp_path, script, blocks=blocks, python=sys.executable)
    assert_swept(result, script, blocks)
    without = plain(tmp_path / "plain", script)
    assert without_numbers(result.output) == without_numbers(without.stdout)
    assert result.returncode == without.returncode == 1


def without_numbers(output):
    """Python 3.12 warns of a fork beside threads, with the process's number."""
    return re.sub(r"pid=\d+", "pid=", output)
