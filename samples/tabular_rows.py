"""Trains a small network on rows of a table: 64 numbers each, in batches of 32."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_table(rows, columns):
    features = torch.randn(rows, columns)
    target = features[:, :8].sum(dim=1, keepdim=True).tanh() + 0.1 * torch.randn(rows, 1)
    return TensorDataset(features, target)


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000 if has_gpu else 40_000)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    # Workers and pinned memory, as the guides recommend.
    loader = DataLoader(
        make_table(args.rows, args.columns),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=4,
        pin_memory=has_gpu,
    )

    model = nn.Sequential(
        nn.Linear(args.columns, args.hidden),
        nn.ReLU(),
        nn.Linear(args.hidden, args.hidden),
        nn.ReLU(),
        nn.Linear(args.hidden, 1),
    ).to(device)
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for features, target in loader:
            features = features.to(device, non_blocking=True)
            target = target.to(device, non_blocking=True)
            loss = criterion(model(features), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
