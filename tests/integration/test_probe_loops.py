"""Loaders and training loops of all styles are found, served and measured."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from pindiag.model import (
    Block,
    FirstStep,
    LoaderChosen,
    LoaderIterated,
    TargetEnded,
    TargetFailed,
    TrainingLoop,
    Unmeasured,
)

from .probe_harness import ABLATIONS, TARGETS, Result, assert_all_counted, few, key, launch, live, order

pytestmark = pytest.mark.integration

STYLES = TARGETS / "styles.py"
BY_STEP = "its batch came last before the first optimizer step"


@pytest.fixture(scope="module")
def in_style(tmp_path_factory):
    """Launches a style, once for all tests: first as written, then under treatments of all kinds."""

    @cache
    def launched(style: str) -> Result:
        return live(tmp_path_factory.mktemp(style), STYLES, style, blocks=few(ABLATIONS))

    return launched


def line(result: Result) -> str:
    location, _, number = result.one(LoaderChosen).key.location.rpartition(":")
    return Path(location).read_text().splitlines()[int(number) - 1]


def assert_counted(result: Result, samples: int = 8) -> Block:
    block = result.all(Block)[0]
    assert block.status == "counted", block
    assert block.steps >= 3
    assert block.samples == samples * block.steps
    assert block.seconds == pytest.approx(sum(block.step_ms) / 1e3, rel=0.2)
    assert block.seconds + block.gap_s == pytest.approx((block.ended_ns - block.started_ns) / 1e9, rel=1e-6)
    assert 0 < block.wait_ms <= block.seconds * 1e3
    assert block.optimizer_ms > 0
    assert result.one(TargetEnded).how == "stopped"
    assert result.returncode == 0, result.output
    assert "Traceback" not in result.output
    return block


FED = [
    ("iterable", 8, "Lines()"),
    ("iterable_workers", 8, "num_workers=2"),
    ("batch_sampler", 8, "BatchSampler("),
    ("own_batch_sampler", 10, "OwnBatches()"),
    ("no_batch_size", 8, "batch_size=None"),
    ("custom_collate", 8, "collate_fn=collate"),
    ("lambda_collate", 8, "lambda"),
    ("worker_init", 8, "worker_init_fn"),
    ("context", 8, "multiprocessing_context"),
    ("subclass", 8, "super().__init__(*args"),
    ("by_hand", 8, "num_workers=1"),
    ("rebuilt", 8, "for x, y in DataLoader"),
    ("one_batch_each", 8, "DataLoader(Rows(), batch_size=8)"),
    ("with_validation", 8, "train = "),
    ("validation_first", 8, "train = "),
    ("nested_validation", 8, "train = "),
    ("by_count", 8, "train = "),
    ("early_break", 8, "train = "),
    ("accumulating", 8, "DataLoader(Rows()"),
    ("workers_set_later", 8, "loader = "),
    ("generator", 8, "yield from DataLoader"),
]
"""Styles that make optimizer steps, the samples of a batch, and what stands in the line that makes their loader."""


@pytest.mark.parametrize(("style", "rebuilt"), [("rebuilt", True), ("with_validation", False), ("early_break", False)])
def test_the_training_loop_is_read(in_style, style: str, rebuilt: bool) -> None:
    loop = in_style(style).one(TrainingLoop)
    location, _, number = loop.location.rpartition(":")
    assert Path(location).read_text().splitlines()[int(number) - 1].lstrip().startswith("for ")
    assert (loop.rebuilt, loop.clocks) == (rebuilt, [])


@pytest.mark.parametrize(("style", "samples", "made"), FED)
def test_the_loader_that_feeds_optimizer_steps_is_found_and_counted(in_style, style, samples, made):
    result = in_style(style)
    assert_counted(result, samples)
    assert made in line(result)
    assert result.one(LoaderChosen).why == BY_STEP


def test_of_zipped_loaders_the_slower_one_is_chosen_and_the_other_named(in_style):
    result = in_style("zipped")
    assert_counted(result)
    assert "several loaders" in result.one(LoaderChosen).why
    chosen = result.one(LoaderChosen)
    assert chosen.key.ordinal == 1
    assert result.all(LoaderIterated)[0].loader == 1


@pytest.mark.parametrize(("style", "why"), [("hand_written_sgd", "backward"), ("inference", "no optimizer was made")])
def test_scripts_without_optimizer_steps_are_measured_by_batches(in_style, style, why):
    result = in_style(style)
    block = result.all(Block)[0]
    assert (block.status, block.samples) == ("counted", 8 * block.steps)
    assert why in result.one(LoaderChosen).why


@pytest.mark.parametrize(
    "style", [*(style for style, _, _ in FED), "zipped", "hand_written_sgd", "inference", "swallows"]
)
def test_all_loops_are_served_under_all_kinds_of_treatments(in_style, style):
    result = in_style(style)
    assert_all_counted(result, ABLATIONS)
    samples = result.one(LoaderChosen).batch_samples
    assert all(block.samples == samples * block.steps for block in result.all(Block))
    assert result.one(TargetEnded).how == "stopped"


@pytest.mark.parametrize("style", ["with_validation", "inference", "iterable_workers"])
def test_a_named_loader_is_served_from_its_first_batch(tmp_path, in_style, style):
    found = in_style(style).one(LoaderChosen)
    result = launch(tmp_path, STYLES, style, loader=found.key)
    assert result.one(Block).status == "counted"
    assert result.one(LoaderChosen).key == found.key
    assert result.one(LoaderChosen).batch_bytes == found.batch_bytes


def test_workers_set_after_construction_are_the_baseline(in_style):
    configuration = in_style("workers_set_later").one(LoaderChosen).configuration
    assert (configuration.num_workers, configuration.prefetch_factor) == (1, 3)


def test_loader_option_picks_by_file_and_line(tmp_path):
    place = key(STYLES, "check = DataLoader(Rows(32, 0.001)").location
    result = launch(tmp_path, STYLES, "with_validation", loader_place=f"styles.py:{place.rpartition(':')[2]}")
    assert "check = " in line(result)
    assert "--loader" in result.one(LoaderChosen).why


def test_a_place_that_no_loader_has_is_said(tmp_path):
    result = launch(tmp_path, STYLES, "short", loader_place="styles.py:1")
    reason = result.one(Unmeasured).reason
    assert "styles.py:1 " in reason
    assert str(STYLES) in reason
    assert not result.all(LoaderChosen)


def test_a_script_shorter_than_two_queues_gives_a_short_block(tmp_path):
    result = launch(tmp_path, STYLES, "short", natural_epochs=True, blocks=[order(settle_steps=18, steps=50)])
    block = result.one(Block)
    assert (block.status, result.one(TargetEnded).how) == ("short", "finished")
    assert block.steps < 3
    assert "ended before" in block.reason
    assert "trained to the end" in result.output


def test_a_script_that_ends_early_still_counts_what_covers_two_queues(tmp_path):
    result = launch(tmp_path, STYLES, "short", natural_epochs=True, blocks=[order(steps=50, seconds=0.01)])
    block = result.one(Block)
    assert block.status == "counted"
    assert 3 <= block.steps < 20
    assert result.one(TargetEnded).epochs == pytest.approx(1.0)


def test_natural_epochs_end_where_the_scripts_own_do(tmp_path):
    result = launch(tmp_path, STYLES, "with_validation", natural_epochs=True, blocks=[order(steps=60)])
    block = assert_counted(result)
    assert block.gap_s > 0.03, "the validation between epochs is not counted"
    assert result.one(TargetEnded).epochs > 3


@pytest.mark.parametrize("style", ["by_hand", "by_count"])
def test_natural_epochs_with_workers_use_them_again(tmp_path, style):
    result = launch(tmp_path, STYLES, style, natural_epochs=True, blocks=[order(steps=45)])
    assert_counted(result)
    chosen = result.one(LoaderChosen).loader
    assert len([record for record in result.all(LoaderIterated) if record.loader == chosen]) == 1


def test_past_the_scripts_natural_end_is_said_when_it_fails_there(tmp_path):
    failed = launch(tmp_path, STYLES, "one_cycle", blocks=[order(steps=60)])
    assert failed.one(TargetFailed).past_natural_end
    assert failed.one(Block).status == "failed"
    again = launch(tmp_path, STYLES, "one_cycle", blocks=[order(steps=60)], natural_epochs=True)
    assert again.one(TargetEnded).how == "finished"


def test_workers_that_sleep_for_seconds_do_not_hold_the_exit(tmp_path):
    result = launch(tmp_path, STYLES, "slow_workers")
    ended = result.one(TargetEnded).t_ns
    assert result.one(Block).status == "counted"
    assert (result.ended_ns - ended) / 1e9 < 5
    assert result.returncode == 0


def test_what_the_parent_waits_for_also_went_over_the_pipe(tmp_path):
    result = launch(tmp_path, STYLES, "short")
    kinds = [record["type"] for record in result.piped]
    assert kinds == ["loader_chosen", "first_step", *["block_phase"] * 3, "block", "target_ended"]
    assert result.one(FirstStep).t_ns <= result.one(Block).started_ns


def test_further_blocks_are_run_when_the_parent_says_so(tmp_path):
    more = {"then": "blocks", "blocks": [{"block": 2, "round": 1, "trial": "as-written", "seconds": 0.1}]}
    result = launch(tmp_path, STYLES, "short", answers=[more])
    assert [block.block for block in result.all(Block)] == [1, 2]
