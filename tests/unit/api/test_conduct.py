"""What a user is told while a run goes on."""

from __future__ import annotations

import msgspec
import pytest

from pindiag.api.conduct import Silence, teller
from pindiag.launch import machine
from pindiag.launch.reckon import FreeMemory
from pindiag.model import LoaderChosen

FOUND = {
    "type": "loader_chosen",
    "launch": 1,
    "t_ns": 0,
    "loader": 0,
    "key": {"location": "train.py:14", "ordinal": 0},
    "why": "it trains",
    "others": [],
    "configuration": {
        "num_workers": 8,
        "pin_memory": False,
        "non_blocking": None,
        "prefetch_factor": 2,
        "persistent_workers": False,
        "batch_size": 64,
    },
    "batches_per_epoch": 100,
    "dataset_samples": 6400,
    "batch_samples": 64,
    "sample_bytes": 602_112,
    "batch_bytes": 38_535_168,
    "tensors": 2,
    "iterable": False,
    "dataset_class": "Data",
    "start_method": "fork",
    "accelerator": None,
    "device": None,
    "device_name": None,
    "intraop_threads": 1,
}


class Heard(Silence):
    """Keeps what was said."""

    def __init__(self):
        self.said = []

    def say(self, text):
        self.said.append(text)


@pytest.mark.parametrize(
    ("launch", "free", "used", "warned"),
    [
        (1, 67e6, 0, True),
        (1, 24e9, 0, False),
        (1, 300e6, 600e6, False),  # what the queue itself holds by then is room for it
        (2, 67e6, 0, False),  # a later launch says nothing new
    ],
)
def test_a_queue_that_does_not_fit_into_shared_memory_is_warned_of(monkeypatch, launch, free, used, warned):
    left = FreeMemory(available_bytes=64 << 30, shm_bytes=int(free), cgroup_bytes=None, shm_used_bytes=int(used))
    monkeypatch.setattr(machine, "free_memory", lambda: left)
    heard = Heard()
    teller(heard)(msgspec.structs.replace(msgspec.convert(FOUND, LoaderChosen), launch=launch))
    assert bool(heard.said) == warned
    assert all("8 workers hold up to 694 MB of batches, and /dev/shm has 67 MB free" in said for said in heard.said)
