from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader

from pindiag.probe.epochs import Epochs
from pindiag.probe.watch import Made, Watch

DATA = torch.arange(10)


def watched(asked):
    iterator = iter(asked)
    watch = Watch(Made(0, "x.py:1", 0, ()), asked, Epochs(asked._index_sampler, asked), None)
    watch.follow(iterator, asked, 0, 0)
    return watch, iterator


@pytest.mark.parametrize(
    ("batch_size", "batch", "samples"),
    [(4, torch.zeros(4, 2), 4), (4, torch.zeros(3, 2), 3), (4, torch.zeros(99, 2), 4), (None, torch.zeros(7, 2), 7)],
)
def test_samples_come_from_the_tensors_where_there_are_no_index_batches(batch_size, batch, samples):
    watch, _ = watched(DataLoader(DATA, batch_size=batch_size))
    assert watch.samples_of({"rows": batch}) == samples


def test_a_watch_does_not_keep_the_iterator_of_the_target_alive():
    watch, iterator = watched(DataLoader(DATA))
    iterator.__dict__["watch"] = watch
    assert watch.iterator is iterator
    del iterator
    assert watch.iterator is None
