import pytest

from pindiag.launch.reckon import FreeMemory, in_flight_bytes, reason_to_skip
from pindiag.model import Configuration

GB = 10**9


def configuration(workers: int, prefetch: int | None = None) -> Configuration:
    return Configuration(
        num_workers=workers,
        pin_memory=False,
        non_blocking=None,
        prefetch_factor=prefetch,
        persistent_workers=False,
        batch_size=64,
    )


def free(available: int | None = 100 * GB, shm: int | None = 100 * GB, cgroup: int | None = None) -> FreeMemory:
    return FreeMemory(available_bytes=available, shm_bytes=shm, cgroup_bytes=cgroup)


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
