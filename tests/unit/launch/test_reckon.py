import msgspec
import pytest

from pindiag.launch.reckon import FreeMemory, in_flight_bytes, reason_to_refuse, reason_to_skip
from pindiag.model import Configuration, Treatment

from .records import GB, configuration, found


def free(available: int | None = 100 * GB, shm: int | None = 100 * GB, cgroup: int | None = None) -> FreeMemory:
    return FreeMemory(available_bytes=available, shm_bytes=shm, cgroup_bytes=cgroup)


def treatment(made: Configuration) -> Treatment:
    return Treatment(id=made.id, kind="configuration", configuration=made)


def test_in_flight() -> None:
    assert in_flight_bytes(configuration(4, 3), 10) == (12 + 2) * 10
    assert in_flight_bytes(configuration(0), 10) == 20


@pytest.mark.parametrize(
    ("workers", "room", "named"),
    [
        (4, free(), None),
        (4, free(shm=11 * GB), "/dev/shm has 11.0 GB free"),
        (0, free(shm=0), None),
        (4, free(available=12 * GB), "memory has 12.0 GB free"),
        (4, free(cgroup=500_000_000), "the control group's memory limit has 500 MB free"),
        (4, free(available=None, shm=None), None),
    ],
)
def test_reason_to_skip(workers: int, room: FreeMemory, named: str | None) -> None:
    reason = reason_to_skip(configuration(workers), GB, room)
    if named is None:
        assert reason is None
    else:
        assert reason is not None and named in reason
        assert "out of memory" in reason and "4 workers hold up to 10.0 GB" in reason


def test_nothing_is_refused_before_the_loader_is_known() -> None:
    assert reason_to_refuse(treatment(configuration(8)), None, free(shm=0)) is None
    assert reason_to_refuse(None, found(1), free(shm=0)) is None


def test_what_needs_no_more_than_the_script_itself_may_run() -> None:
    full = free(shm=0, available=0)
    assert reason_to_refuse(treatment(configuration(4)), found(4), full) is None
    assert reason_to_refuse(treatment(configuration(2)), found(4), full) is None
    assert "5 workers hold up to 12.0 GB" in (reason_to_refuse(treatment(configuration(5)), found(4), full) or "")


def test_larger_batches_need_more() -> None:
    double = msgspec.structs.replace(configuration(4), batch_size=128)
    assert "20.0 GB" in (reason_to_refuse(treatment(double), found(4), free(shm=0)) or "")


@pytest.mark.parametrize(("used", "fits"), [(8 * GB, True), (1 * GB, False), (None, False)])
def test_the_queue_of_what_runs_makes_room(used: int | None, fits: bool) -> None:
    """Six workers want 14 GB of 10 free ones; what runs now frees up to 10 GB, but no more than is in use."""
    room = msgspec.structs.replace(free(shm=10 * GB), shm_used_bytes=used)
    wanted = treatment(configuration(6))
    assert reason_to_refuse(wanted, found(1), room) is not None
    assert (reason_to_refuse(wanted, found(1), room, running=configuration(4)) is None) == fits


def test_without_workers_no_queue_makes_room() -> None:
    room = msgspec.structs.replace(free(shm=10 * GB), shm_used_bytes=9 * GB)
    assert reason_to_refuse(treatment(configuration(6)), found(1), room, running=configuration(0)) is not None


def test_room_is_freed_everywhere() -> None:
    room = FreeMemory(available_bytes=5, shm_bytes=6, cgroup_bytes=None, shm_used_bytes=9)
    assert room.without(4) == FreeMemory(available_bytes=9, shm_bytes=10, cgroup_bytes=None)
    assert room.without(40).shm_bytes == 15
