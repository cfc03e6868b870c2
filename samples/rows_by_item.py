"""Trains a small network on a table in memory, fetched row by row: 2 048 rows of 20 numbers make a batch."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000 if has_gpu else 200_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=2048)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    features = torch.randn(args.rows, args.columns)
    target = (features[:, :5].sum(dim=1) > 0).float()
    loader = DataLoader(TensorDataset(features, target), batch_size=args.batch_size, shuffle=True, pin_memory=has_gpu)
    model = nn.Sequential(nn.Linear(args.columns, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for rows, labels in loader:
            rows, labels = rows.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            loss = F.binary_cross_entropy_with_logits(model(rows).squeeze(1), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
