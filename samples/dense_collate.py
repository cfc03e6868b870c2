"""Trains on sparse rows that a collate function makes dense, one entry after the other, in two workers."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FEATURES, ENTRIES = 2048, 60


class SparseRows(Dataset):
    """Rows of a sparse table: the places of their entries, and the values there."""

    def __init__(self, rows):
        self.places = torch.randint(FEATURES, (rows, ENTRIES))
        self.values = torch.rand(rows, ENTRIES)

    def __len__(self):
        return len(self.places)

    def __getitem__(self, index):
        return self.places[index], self.values[index]


def dense(rows):
    """Pads a batch to one dense table, and says which rows are large."""
    table = torch.zeros(len(rows), FEATURES)
    for row, (places, values) in zip(table, rows, strict=True):
        for place, value in zip(places.tolist(), values.tolist(), strict=True):
            row[place] = value
    return table, (table.sum(dim=1) > ENTRIES / 2).long()


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000 if has_gpu else 20_000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    data = SparseRows(args.rows)
    loader = DataLoader(data, args.batch_size, shuffle=True, num_workers=2, pin_memory=has_gpu, collate_fn=dense)
    model = nn.Sequential(nn.Linear(FEATURES, args.width), nn.ReLU(), nn.Linear(args.width, 2)).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for table, labels in loader:
            table = table.to(device, non_blocking=True)
            loss = criterion(model(table), labels.to(device, non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
