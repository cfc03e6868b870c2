import msgspec
import pytest

from pindiag.disturbance import disturbance, disturbances, is_usual
from pindiag.journal import Journal
from pindiag.model import BlockOrder, LaunchBegan, LaunchOrder

from .launch import records
from .loads import CROWDED, load

UNKNOWN = dict.fromkeys(
    (
        "cpus", "target_cpus", "foreign_cpus", "stolen_cpus", "queued_share", "throttled_share", "quota_cpus",
        "gpu_slowed_share", "gpu_sm_clock_mhz",
    )
)  # fmt: skip


@pytest.mark.parametrize(
    "quiet",
    [
        {},
        UNKNOWN,
        {"foreign_cpus": 1.1, "queued_share": 0.3},  # its own workers queue
        {"foreign_cpus": 4.0, "queued_share": 0.01},  # the others have a low priority, or CPUs are left
        {"foreign_cpus": 4.0, "target_cpus": 3.0, "queued_share": None},
        {"throttled_share": 0.6, "quota_cpus": 4.0, "target_cpus": 3.9},  # throttles itself
        {"throttled_share": 0.6},
        {"stolen_cpus": 0.1},
        {"gpu_slowed_share": 0.2},
        {"cpu_slowed_share": 0.2},
    ],
)
def test_what_a_treatment_does_to_itself_is_no_disturbance(quiet):
    assert disturbance(load(**quiet)) is None


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        (
            {"foreign_cpus": 1.3, "cpus": 2, "queued_share": 0.35},
            "others",
            "other processes and the kernel used 1.3 of 2 CPUs; "
            "the target queued 35 % of the time in which it wanted a CPU",
        ),
        ({"foreign_cpus": 4.4, "queued_share": None}, "others", "other processes and the kernel used 4.4 of 8 CPUs"),
        ({"cpu_slowed_share": 0.3}, "heat", "heat held the CPUs' clocks down 30 % of the time"),
        ({"stolen_cpus": 0.4}, "host", "the host of this virtual machine took 0.4 CPUs away"),
        (
            {"throttled_share": 0.3, "quota_cpus": 4.0, "target_cpus": 1.5},
            "quota",
            "the quota of 4 CPUs, of which the target used 1.5, held its control group back 30 % of the time",
        ),
        (
            {"gpu_slowed_share": 0.5, "gpu_sm_clock_mhz": 1204.0},
            "gpu",
            "heat or power held the GPU's clocks down in 50 % of its samples, at 1204 MHz on average",
        ),
    ],
)
def test_what_comes_from_outside_is_named_with_its_figures(changes, kind, words):
    assert disturbance(load(**changes)) == (kind, words)


def clocks(*told, **changes):
    """Blocks of one treatment with these clocks."""
    return [load(block, cpu_clock_mhz=mhz, **changes) for block, mhz in enumerate(told, start=1)]


def test_a_block_clocked_far_below_the_others_of_its_treatment_is_disturbed():
    found = disturbances([*clocks(3000.0, 2300.0, 3100.0, 3000.0), load(9, trial="nw0-pin0", cpu_clock_mhz=1200.0)])
    assert found == {
        2: ("clock", "the CPUs were clocked at 2300 MHz, in the other blocks of this treatment at 3000 MHz")
    }


@pytest.mark.parametrize(
    "loads",
    [
        clocks(3000.0, 2450.0, 3000.0, 3000.0),  # turbo
        clocks(3000.0, 2000.0, 3000.0),  # too few to tell which is usual
        clocks(3000.0, 2000.0, 3000.0, 3000.0, target_cpus=0.5),  # CPUs that idle
        clocks(3000.0, None, 3000.0, 3000.0),
        clocks(*[None] * 4),
    ],
)
def test_what_a_clock_does_by_itself_is_no_disturbance(loads):
    assert disturbances(loads) == {}


def test_a_third_of_the_blocks_is_not_yet_usual():
    assert not is_usual(0, 0)
    assert not is_usual(1, 3)
    assert is_usual(1, 2)


def run_of(*blocks, isolation="live", loads=()):
    """A launch of blocks of the third round, given as (number, trial), all counted."""
    order = LaunchOrder(
        purpose="round",
        isolation=isolation,
        treatment=None,
        blocks=[BlockOrder(block=number, round=3, trial=trial) for number, trial in blocks],
    )
    made = [
        msgspec.structs.replace(records.block(1, number), block=number, trial=trial, round=3)
        for number, trial in blocks
    ]
    (launch,) = Journal([LaunchBegan(launch=1, t_ns=0, pid=1, order=order), *made, *loads]).launches
    return launch


def counted(launch):
    return [block.block for block in launch.counted]


QUIET = [load(number) for number in range(10, 20)]


def test_a_disturbed_block_counts_until_another_of_its_round_stands_beside_it():
    loads = [load(2, **CROWDED), *QUIET]
    alone = run_of((1, "b"), (2, "a"), loads=loads)
    assert (set(alone.to_repeat), counted(alone)) == ({2}, [1, 2])
    repeated = run_of((1, "b"), (2, "a"), (3, "a"), loads=loads)
    assert (set(repeated.replaced), counted(repeated)) == ({2}, [1, 3])


def test_disturbed_again_both_count():
    launch = run_of((2, "a"), (3, "a"), loads=[load(2, **CROWDED), load(3, **CROWDED), *QUIET])
    assert set(launch.disturbed) == {2, 3}
    assert (launch.replaced, counted(launch)) == (frozenset(), [2, 3])


def test_what_is_usual_is_left_out_nowhere():
    loads = [load(1), load(2, **CROWDED)]
    launch = run_of((2, "a"), (3, "a"), loads=loads)
    assert launch.load_is_usual
    assert (launch.to_repeat, counted(launch)) == (frozenset(), [2, 3])


def test_a_fresh_launch_repeats_nothing():
    launch = run_of((2, "a"), (3, "a"), isolation="fresh", loads=[load(2, **CROWDED), *QUIET])
    assert set(launch.disturbed) == {2}
    assert (launch.to_repeat, counted(launch)) == (frozenset(), [2, 3])


def test_without_records_of_the_load_nothing_is_disturbed():
    launch = run_of((1, "a"))
    assert (launch.disturbed, launch.load_is_usual, counted(launch)) == ({}, False, [1])
