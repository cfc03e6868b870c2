import msgspec
import pytest

from pindiag import model as m
from pindiag.report import names

from . import live


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("wait_share", "wait share"),
        ("worker_fetch_ms", "worker fetch"),
        ("target_cpu_share", "target CPU share"),
        ("nw0-pin1 over nw4_pin0", "nw0-pin1 over nw4_pin0"),
        ("num_workers=0", "num_workers=0"),
        ("ms", "ms"),
        ("transfer_gb_per_s", "transfer"),
        ("read_bytes_per_s", "read"),
        ("switches_per_s", "switches"),
    ],
)
def test_names_of_facts_as_words(name, wanted):
    assert names.words(name) == wanted


def test_configurations_in_words():
    base = m.Configuration(
        num_workers=1,
        pin_memory=True,
        non_blocking="mixed",
        prefetch_factor=4,
        persistent_workers=True,
        batch_size=32,
    )
    assert names.configuration(base, with_batch=True) == (
        "1 worker, pin, partly non_blocking, prefetch 4, persistent, batch 32"
    )
    plain = msgspec.structs.replace(base, num_workers=0, non_blocking=None, persistent_workers=False)
    assert names.configuration(plain) == "no workers, pin"


def test_ablations_and_tweaks_in_words():
    words = names.labels(live.live().trials)
    assert words["compute_only"] == "step alone, replaying batches that are already there"
    assert words["host_batch-pin0-nb0"] == "copy and step, replaying pageable batches, blocking"
    assert words["loader_only-nw8-pin1"] == "loader alone, 8 workers, pin"
    assert words[live.THREADS] == "4 workers, pin off; the main thread with all its threads"


def test_copies_are_named_by_their_way():
    assert [names.span(name) for name in ("HtoD", "DtoH", "wait")] == ["to the GPU", "from the GPU", "wait"]
