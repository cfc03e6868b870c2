"""What is said of blocks that something outside disturbed, and of a run in which some were."""

import msgspec
import pytest

from pindiag.journal import Journal
from pindiag.model import Block, BlocksOrdered
from tests.unit.loads import CROWDED, load

from .honest import assert_honest
from .live_sweeps import BASELINE, BEATEN, LIVE, fact, paced, recorded


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp("live"), pairs=2)


def with_loads(live, disturbed):
    """Every block has what ran beside it, but for the scout's; those named are disturbed."""
    loads = [
        load(
            one.block, trial=one.trial, launch=one.launch, t_ns=one.t_ns, **(CROWDED if one.block in disturbed else {})
        )
        for one in live.records
        if isinstance(one, Block)
    ]
    return type(live)(live.spec, [*live.records, *loads], live.batches)


def figures(analysis, number):
    return next(block for block in analysis.blocks if block.id == number)


def in_round(live, trial, number):
    return [block.block for block in live.blocks(trial) if block.round == number]


def test_a_run_without_records_of_the_load_says_so(live):
    analysis = live.analysed()
    for name in (
        "disturbed_blocks", "disturbed_blocks_share", "disturbances", "foreign_cpus", "stolen_cpus", "cpu_clock_mhz",
    ):  # fmt: skip
        found = fact(analysis, name)
        assert (found.value, found.reason) == (None, "no record tells what ran beside the blocks")
    assert not any("disturbed" in (block.reason or "") for block in analysis.blocks)


def test_a_quiet_run_is_said_to_be_one(live):
    analysis = with_loads(live, ()).analysed()
    blocks = len(analysis.blocks)
    assert fact(analysis, "disturbances").value == f"nothing from outside was seen to disturb any of {blocks} blocks"
    assert fact(analysis, "disturbed_as_usual").value is False
    assert fact(analysis, "foreign_cpus").value == pytest.approx(0.1)
    assert fact(analysis, "cpu_clock_mhz").reason == "it was recorded before this was measured"
    assert_honest(analysis)


def test_what_has_no_other_beside_it_counts_and_is_marked(live):
    (number,) = in_round(live, BEATEN, 2)
    analysis = with_loads(live, {number}).analysed()
    found = figures(analysis, number)
    assert found.status == "counted"
    assert found.reason.startswith("disturbed: other processes and the kernel used 4.0 of 8 CPUs")
    assert found.reason.endswith("it counts all the same")
    blocks = len(analysis.blocks)
    assert fact(analysis, "disturbances").value == (
        f"others used 4.0 of 8 CPUs during 1 of {blocks} blocks. 1 counts and is marked"
    )


def test_what_was_repeated_is_left_out(live):
    first, second = in_round(live, BASELINE, 2)
    ran = with_loads(live, {first})
    analysis = ran.analysed()
    found = figures(analysis, first)
    assert found.status == "left_out"
    assert "went undisturbed and counts instead" in found.reason
    baseline = next(trial for trial in analysis.trials if trial.id == BASELINE)
    assert first not in baseline.blocks
    assert second in baseline.blocks
    assert fact(analysis, "disturbances").value.endswith("1 was repeated and left out")
    assert "5 rounds" in analysis.noise_floor.source


def test_what_is_usual_is_left_out_nowhere(live):
    numbers = [block.block for block in Journal(live.records).launches[LIVE - 1].all(Block)]
    analysis = with_loads(live, set(numbers[::2])).analysed()
    assert fact(analysis, "disturbed_as_usual").value is True
    assert "taken as part of the machine" in fact(analysis, "disturbances").value
    assert {block.status for block in analysis.blocks} == {"counted"}


def test_two_baselines_of_a_round_that_differ_far_more_than_others_are_marked_and_count(live):
    first, second = in_round(live, BASELINE, 3)
    slow = live.changed(paced(2.0, BASELINE, only=lambda block: block.block == first))
    analysis = slow.analysed()
    for number in (first, second):
        assert figures(analysis, number).status == "counted"
        assert "between its two blocks of this round, far more than in others" in figures(analysis, number).reason
    marked = [block.id for block in analysis.blocks if "far more than in others" in (block.reason or "")]
    assert marked == [first, second]


def test_the_length_of_blocks_is_told_with_its_reason(live):
    def longer(ordered):
        blocks = [msgspec.structs.replace(block, why_seconds="starting took long") for block in ordered.next.blocks]
        return msgspec.structs.replace(ordered, next=msgspec.structs.replace(ordered.next, blocks=blocks))

    assert fact(live.analysed(), "block_length").reason == "blocks had the usual length"
    analysis = live.changed(longer, BlocksOrdered).analysed()
    assert fact(analysis, "block_length").value == "starting took long: 6 rounds of configurations"


def test_the_share_of_starting_workers(live):
    found = fact(live.analysed(), "race_startup_share")
    assert 0 < found.value < 1
