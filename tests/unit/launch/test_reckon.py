import msgspec
import pytest

from pindiag.launch.reckon import FreeMemory, Killed, Met, need, reason_to_refuse, reason_to_skip
from pindiag.model import Configuration, Treatment

from .records import GB, configuration, found


def free(available: int | None = 100 * GB, shm: int | None = 100 * GB, cgroup: int | None = None) -> FreeMemory:
    return FreeMemory(available_bytes=available, shm_bytes=shm, cgroup_bytes=cgroup)


def treatment(made: Configuration) -> Treatment:
    return Treatment(id=made.id, kind="configuration", configuration=made)


def test_in_flight() -> None:
    assert need(configuration(4, 3), 10).queue_bytes == (12 + 2) * 10
    assert need(configuration(0), 10).queue_bytes == 20


def test_what_torch_pins_is_rounded_up() -> None:
    pinned = msgspec.structs.replace(configuration(4), pin_memory=True)
    assert need(pinned, 33, pins=True).host_bytes == 10 * 64
    assert need(pinned, 64, pins=True).host_bytes == 10 * 64
    assert need(pinned, 33).host_bytes == need(configuration(4), 33, pins=True).host_bytes == 10 * 33
    assert need(pinned, 33, pins=True).queue_bytes == 10 * 33
    assert need(pinned, 0, pins=True).host_bytes == 0


def test_workers_hold_memory_of_their_own() -> None:
    made = need(configuration(4), 10, worker_bytes=7)
    assert (made.queue_bytes, made.memory_bytes) == (100, 128)


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
    reason = reason_to_skip(configuration(workers), need(configuration(workers), GB), room)
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
    assert room.without(4, 3) == FreeMemory(available_bytes=12, shm_bytes=10, cgroup_bytes=None)


def test_copies_of_the_dataset_count_where_memory_is_short() -> None:
    met = Met(worker_bytes=2 * GB)
    room = free(available=30 * GB)
    assert reason_to_refuse(treatment(configuration(8)), found(4), room, met=Met()) is None
    reason = reason_to_refuse(treatment(configuration(8)), found(4), room, met=met)
    assert reason == (
        "it would be out of memory: 8 workers hold up to 18.0 GB of batches and 16.0 GB of their own, "
        "and memory has 30.0 GB free"
    )
    assert reason_to_refuse(treatment(configuration(8)), found(4), room, running=configuration(7), met=met) is None
    assert reason_to_refuse(treatment(configuration(3)), found(4), free(available=0), met=met) is None


def killed(workers: int, *, shm: bool = False) -> Met:
    return Met(killed=[Killed(configuration=configuration(workers), shm=shm)])


@pytest.mark.parametrize(
    ("wanted", "met", "refused"),
    [
        (configuration(6), killed(6), True),
        (configuration(8), killed(6), True),
        (configuration(5), killed(6), False),
        (configuration(8, 1), killed(6), False),  # a shorter queue
        (configuration(5, 4), killed(6), False),  # fewer workers, each with memory of its own
        (configuration(5, 4), killed(6, shm=True), True),  # in /dev/shm the queue alone counts
        (configuration(4), killed(2), False),  # the script as written ran with as many
        (msgspec.structs.replace(configuration(6), batch_size=32), killed(6), False),
        (msgspec.structs.replace(configuration(6), batch_size=128), killed(6), True),
    ],
)
def test_what_was_killed_for_memory_is_not_tried_with_more(wanted: Configuration, met: Met, refused: bool) -> None:
    reason = reason_to_refuse(treatment(wanted), found(4), free(), met=met)
    ended = f"nw{met.killed[0].configuration.num_workers}-pin0"
    said = f"it would be out of memory: it needs at least as much as {ended}, which ended for want of it"
    assert reason == (said if refused else None)


def test_pinned_memory_that_was_too_much_says_nothing_of_the_unpinned() -> None:
    pinned = msgspec.structs.replace(configuration(6), pin_memory=True)
    met = Met(killed=[Killed(configuration=pinned, shm=False)])
    assert reason_to_refuse(treatment(configuration(6)), found(4), free(), met=met) is None
    assert reason_to_refuse(treatment(pinned), found(4), free(), met=met) is not None
