import pytest

from pindiag.launch.patience import Limits, Pace, Patience
from pindiag.model import BlockPhase, FirstStep, TargetEnded

from .records import block, first_step, iterator

LIMITS = Limits(hang_factor=10, hang_s=30, export_s=60, leave_s=10)
FIRST = FirstStep(launch=1, t_ns=0)
SETTLING = BlockPhase(launch=1, t_ns=0, block=1, trial="b", phase="settling")
ENDED = TargetEnded(launch=1, t_ns=0, how="finished", status=0, steps=1, epochs=None)


def pace(expected_s: float | None) -> Pace:
    return Pace() if expected_s is None else Pace([first_step(9, 0), block(9, expected_s)])


def patience(*, wait_s: float = 600, expected_s: float | None = 5, natural_epochs: bool = False) -> Patience:
    return Patience(LIMITS, wait_s, pace(expected_s), natural_epochs=natural_epochs, now_s=100)


def last_moment(made: Patience, since: float) -> float:
    """Seconds after `since` at which it is not overdue yet, but is a moment later."""
    low, high = 0.0, 1e6
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if made.overdue(since + middle) else (middle, high)
    return round(high, 2)


def test_the_first_step_may_take_as_long_as_asked() -> None:
    made = patience()
    assert last_moment(made, 100) == 600
    made.progressed(SETTLING, 400)
    assert last_moment(made, 100) == 600
    assert made.overdue(701) == "it made no training step within 600 s (--wait)"


@pytest.mark.parametrize(
    ("fields", "limit_s"),
    [
        ({"expected_s": 5}, 50),
        ({"expected_s": 1}, 30),
        ({"expected_s": None}, 600),
        ({"expected_s": None, "wait_s": 3}, 30),
        ({"expected_s": 1, "natural_epochs": True}, 600),
        ({"expected_s": 100, "natural_epochs": True}, 1000),
    ],
)
def test_progress_after_the_first_step(fields: dict[str, object], limit_s: float) -> None:
    made = patience(**fields)
    made.progressed(FIRST, 200)
    made.progressed(SETTLING, 210)
    assert last_moment(made, 210) == limit_s


def test_stopping() -> None:
    made = patience()
    made.progressed(FIRST, 200)
    made.answered("stop", 300)
    made.progressed(SETTLING, 305)
    assert last_moment(made, 300) == 10
    made.progressed(ENDED, 308)
    assert last_moment(made, 308) == 10


def test_profiling() -> None:
    made = patience()
    made.progressed(FIRST, 200)
    made.answered("profile", 300)
    assert last_moment(made, 300) == 50 + 60
    assert "profiler window" in (made.overdue(1000) or "")


def test_script_that_ends_by_itself_may_tidy_up() -> None:
    made = patience()
    made.progressed(FIRST, 200)
    made.progressed(ENDED, 300)
    assert last_moment(made, 300) == 50


def test_windows_one_after_another() -> None:
    made = patience()
    made.progressed(FIRST, 200)
    made.answered("windows", 300)
    made.progressed(SETTLING, 350)
    assert last_moment(made, 350) == 50 + 60
    made.progressed(ENDED, 400)
    assert last_moment(made, 400) == 50


def test_next_blocks() -> None:
    made = patience()
    made.progressed(FIRST, 200)
    made.answered("blocks", 300)
    assert last_moment(made, 300) == 50
    assert made.overdue(1000) == "it made no progress for 50 s"


def test_a_slow_block_of_the_launch_itself_is_learned_from() -> None:
    learning = Pace()
    made = Patience(LIMITS, 600, learning, natural_epochs=False, now_s=100)
    for record in (first_step(1, 200), block(1, 204)):
        learning.hear(record)
        made.progressed(record, 204)
    made.answered("blocks", 204)
    assert last_moment(made, 204) == 40
    learning.hear(block(1, 224))
    made.answered("blocks", 224)
    assert last_moment(made, 224) == 200


def test_pace_before_the_first_block_is_not_known() -> None:
    assert Pace().slowest_s is None
    assert Pace([first_step(1, 100), iterator(9000.0)]).slowest_s is None
    assert Pace([first_step(1, 100), block(2, 250)]).slowest_s is None


def test_pace_of_several_launches_and_of_blocks_in_one() -> None:
    launches = [first_step(1, 100), first_step(2, 200)]
    assert Pace([*launches, block(1, 103), block(2, 207)]).slowest_s == 7
    assert Pace([*launches, block(1, 103), block(1, 112), block(1, 114), block(2, 207)]).slowest_s == 9


def test_a_treatment_may_have_to_start_workers() -> None:
    ran = [first_step(1, 100), block(1, 103)]
    assert Pace([*ran, iterator(2000.0)]).slowest_s == 3
    assert Pace([*ran, iterator(None), iterator(12000.0)]).slowest_s == 12
