from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from pindiag.probe.session import raised_by_loader


class Broken(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        raise LookupError(index)


def raised(call):
    with pytest.raises(Exception) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("workers", [0, 1])
def test_what_a_dataset_raises_comes_from_its_loader(workers):
    assert raised_by_loader(raised(lambda: next(iter(DataLoader(Broken(), num_workers=workers)))))


def test_an_exception_in_place_of_the_loaders_comes_from_it_too():
    def wrapped():
        try:
            next(iter(DataLoader(Broken())))
        except LookupError as error:
            raise RuntimeError("training failed") from error

    assert raised_by_loader(raised(wrapped))


def test_what_the_step_raises_does_not():
    def step():
        for batch in DataLoader(torch.zeros(4)):
            batch.reshape(7)

    assert not raised_by_loader(raised(step))
