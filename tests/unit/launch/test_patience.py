import msgspec
import pytest

from pindiag.launch.patience import Limits, Patience, slowest_block_s
from pindiag.model import AnyRecord, BlockPhase, FirstStep, TargetEnded

LIMITS = Limits(hang_factor=10, hang_s=30, export_s=60, leave_s=10)
FIRST = FirstStep(launch=1, t_ns=0)
SETTLING = BlockPhase(launch=1, t_ns=0, block=1, trial="b", phase="settling")
ENDED = TargetEnded(launch=1, t_ns=0, how="finished", status=0, steps=1, epochs=None)


def patience(*, wait_s: float = 600, expected_s: float | None = 5, natural_epochs: bool = False) -> Patience:
    return Patience(LIMITS, wait_s, expected_s, natural_epochs=natural_epochs, now_s=100)


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


def test_slowest_block() -> None:
    def block(launch: int, t_s: float) -> AnyRecord:
        fields = {
            "type": "block", "launch": launch, "t_ns": int(t_s * 1e9), "block": launch, "trial": "b", "round": 1,
            "settle_steps": 1, "steps": 1, "samples": 1, "started_ns": 0, "ended_ns": 1, "seconds": 1.0, "gap_s": 0.0,
            "status": "counted", "reason": None, "wait_ms": 0.0, "wait_cpu_ms": 0.0, "transfer_ms": 0.0,
            "synchronise_ms": 0.0, "optimizer_ms": 0.0, "main_cpu_ms": 0.0, "step_ms": [], "step_wait_ms": [],
            "transfers": [], "syncs": [], "pin_thread": None, "host_allocator": None, "missing": {},
            "probe_us_per_step": 0.0,
        }  # fmt: skip
        return msgspec.convert(fields, AnyRecord)

    first = [FirstStep(launch=launch, t_ns=launch * 100 * 10**9) for launch in (1, 2)]
    assert slowest_block_s([]) is None
    assert slowest_block_s([first[0], block(2, 250)]) is None
    assert slowest_block_s([*first, block(1, 103), block(2, 207)]) == 7
