"""Trains an autoencoder with the loader's arguments of a GPU script, wherever it runs."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Signals(Dataset):
    """Noisy sines of one second, computed when they are read."""

    def __init__(self, samples, points):
        self.time = torch.linspace(0, 1, points)
        self.samples = samples

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        frequency = 1 + index % 50
        clean = torch.sin(2 * torch.pi * frequency * self.time)
        return clean + 0.3 * torch.randn_like(clean), clean


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    big = device.type == "cuda"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=40_000 if big else 4000)
    parser.add_argument("--points", type=int, default=16_000 if big else 4000)
    parser.add_argument("--hidden", type=int, default=1024 if big else 128)
    parser.add_argument("--batch-size", type=int, default=256 if big else 64)
    parser.add_argument("--epochs", type=int, default=5 if big else 15)
    args = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(
        Signals(args.samples, args.points),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=2,
        pin_memory=True,
    )

    model = nn.Sequential(
        nn.Linear(args.points, args.hidden),
        nn.GELU(),
        nn.Linear(args.hidden, args.points),
    ).to(device)
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        start = time.time()
        losses = []
        for noisy, clean in loader:
            noisy = noisy.to(device, non_blocking=True)
            clean = clean.to(device, non_blocking=True)
            loss = criterion(model(noisy), clean)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
