"""Trains on short epochs and makes its DataLoader anew in each of them, to take the next shard of its data."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset


def make_loader(data, epoch, batch_size, has_gpu):
    shard = Subset(data, range(epoch % 4, len(data), 4))
    # Workers that live on from one epoch to the next, or so it says.
    return DataLoader(
        shard,
        batch_size=batch_size,
        shuffle=True,
        num_workers=8 if has_gpu else 4,
        pin_memory=has_gpu,
        persistent_workers=True,
    )


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=20_480 if has_gpu else 2048)
    parser.add_argument("--batch-size", type=int, default=128 if has_gpu else 64)
    parser.add_argument("--width", type=int, default=16 if has_gpu else 4)
    parser.add_argument("--epochs", type=int, default=40)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    data = TensorDataset(torch.rand(args.samples, 3, 32, 32), torch.randint(10, (args.samples,)))
    model = nn.Sequential(
        nn.Conv2d(3, args.width, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(args.width, 16, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(256, 10),
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        loader = make_loader(data, epoch, args.batch_size, has_gpu)
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            loss = F.cross_entropy(model(images), labels.to(device, non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
