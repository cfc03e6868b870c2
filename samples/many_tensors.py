"""Trains on a table whose columns stay apart: a batch is a dictionary of hundreds of small tensors, one a column."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Columns(Dataset):
    """A column store: every column is a tensor of its own, and a batch is cut out of all of them at once."""

    def __init__(self, rows, columns):
        self.columns = {f"feature_{number}": torch.randn(rows) for number in range(columns)}
        self.target = sum(list(self.columns.values())[:8]).tanh()

    def __len__(self):
        return len(self.target)

    def __getitems__(self, rows):
        rows = torch.tensor(rows)
        return {name: column[rows] for name, column in self.columns.items()}, self.target[rows]


def as_it_is(batch):
    return batch


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000 if has_gpu else 40_000)
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    loader = DataLoader(
        Columns(args.rows, args.columns),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=4 if has_gpu else 2,
        pin_memory=has_gpu,
        collate_fn=as_it_is,
        persistent_workers=True,
    )
    model = nn.Sequential(nn.Linear(args.columns, 256), nn.ReLU(), nn.Linear(256, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for features, target in loader:
            rows = torch.stack([column.to(device, non_blocking=True) for column in features.values()], dim=1)
            loss = F.mse_loss(model(rows).squeeze(1), target.to(device, non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
