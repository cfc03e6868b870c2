"""Trains for ever on batches that a store gives after 40 ms, beside steps of 10 ms; workers would hide the wait."""

import time

import torch
from torch.utils.data import DataLoader, Dataset

ANSWER_S = 0.04
STEP_S = 0.01


class Store(Dataset):
    """Rows from a store that answers after a while."""

    def __len__(self):
        return 100_000

    def __getitems__(self, indices):
        """Give the rows of a batch after one wait."""
        time.sleep(ANSWER_S)
        return [(torch.full((16,), float(index % 7)), index % 4) for index in indices]


def main():
    """Train."""
    loader = DataLoader(Store(), batch_size=4, shuffle=True, num_workers=0)  # as the tutorial has it
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        for rows, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(STEP_S)


if __name__ == "__main__":
    main()
