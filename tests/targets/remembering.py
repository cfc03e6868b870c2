"""Datasets that are not the same afterwards, and epochs of 20 steps; every cost is a wait of known length.

Fetching a batch takes FETCH_S, a step STEP_S. So a step takes 140 ms without workers, 120 with one and 30 with four.
"""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

FETCH_S, STEP_S, BATCH = 0.120, 0.020, 4


class Rows(Dataset):
    """Forgets everything."""

    def __init__(self, batches):
        self.rows = batches * BATCH

    def __len__(self):
        return self.rows

    def __getitems__(self, indices):
        time.sleep(FETCH_S)
        return [self.row(index) for index in indices]

    def row(self, index):
        return torch.full((16,), float(index % 7)), index % 4


class Caching(Rows):
    """Keeps what it read, in the process that read it, and does not wait for it again."""

    def __init__(self, batches):
        super().__init__(batches)
        self.read = {}

    def __getitems__(self, indices):
        new = [index for index in indices if index not in self.read]
        time.sleep(FETCH_S * len(new) / len(indices))
        self.read.update((index, self.row(index)) for index in new)
        return [self.read[index] for index in indices]


class Connected(Rows):
    """Waits twice as long for its first four batches, as over a connection that is new."""

    served = 0

    def __getitems__(self, indices):
        self.served += 1
        time.sleep(FETCH_S if self.served <= 4 else 0)
        return super().__getitems__(indices)


DATASETS = {
    "caching": lambda: Caching(200),
    "connected": lambda: Connected(4000),
    "short_epochs": lambda: Rows(20),
}


def main():
    loader = DataLoader(DATASETS[sys.argv[1]](), batch_size=BATCH, shuffle=True, num_workers=1)
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        for x, y in loader:
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
            time.sleep(STEP_S)


if __name__ == "__main__":
    main()
