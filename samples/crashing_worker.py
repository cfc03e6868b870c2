"""Trains on packed records that a native decoder reads without checking bounds; one record's place is damaged."""

import argparse
import ctypes
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FLOATS = 256
DAMAGED = 250
"""The record whose entry in the table of contents points far outside of the archive."""


class PackedRecords(Dataset):
    """Records of 256 floats in one block of memory, and a table of where each begins."""

    def __init__(self, samples):
        self.archive = torch.randn(samples, FLOATS)
        self.places = [4 * FLOATS * number for number in range(samples)]
        if samples > DAMAGED:
            self.places[DAMAGED] = 1 << 45

    def __len__(self):
        return len(self.places)

    def __getitem__(self, index):
        record = ctypes.string_at(self.archive.data_ptr() + self.places[index], 4 * FLOATS)
        features = torch.frombuffer(bytearray(record), dtype=torch.float32)
        return features, (features[:4].sum() > 0).long()


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    loader = DataLoader(PackedRecords(args.samples), batch_size=args.batch_size, num_workers=2, pin_memory=has_gpu)
    model = nn.Sequential(nn.Linear(FLOATS, 512), nn.ReLU(), nn.Linear(512, 2)).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for features, labels in loader:
            loss = criterion(model(features.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
