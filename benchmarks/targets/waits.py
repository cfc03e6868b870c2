"""Trains for ever and computes next to nothing: every cost is a wait of known length, in a known place."""

import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Store(Dataset):
    """Rows from a store that answers after a while."""

    def __init__(self, wait_s):
        self.wait_s = wait_s

    def __len__(self):
        return 100_000

    def __getitems__(self, indices):
        """Give the rows of a batch after one wait."""
        time.sleep(self.wait_s)
        return [(torch.full((16,), float(index % 7)), index % 4) for index in indices]


class Parcel:
    """Travels with a batch, and takes a while to unpack in the process that receives it."""

    def __init__(self, wait_s):
        self.wait_s = wait_s

    def __reduce__(self):
        return unpack, (self.wait_s,)


def unpack(wait_s):
    """Rebuild a parcel."""
    time.sleep(wait_s)
    return Parcel(wait_s)


class Collate:
    """Stacks the samples and adds the parcel."""

    def __init__(self, wait_s):
        self.wait_s = wait_s

    def __call__(self, samples):
        """Give rows, labels, parcel."""
        rows, labels = zip(*samples, strict=True)
        return torch.stack(rows), torch.tensor(labels), Parcel(self.wait_s)


def main():
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--start-s", "--fetch-ms", "--unpack-ms", "--step-ms"):
        parser.add_argument(name, type=float, default=0.0)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()

    time.sleep(args.start_s)
    loader = DataLoader(
        Store(args.fetch_ms / 1000),
        batch_size=4,
        shuffle=True,
        num_workers=args.workers,
        collate_fn=Collate(args.unpack_ms / 1000),
    )
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        for rows, labels, _ in loader:
            loss = torch.nn.functional.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(args.step_ms / 1000)


if __name__ == "__main__":
    main()
