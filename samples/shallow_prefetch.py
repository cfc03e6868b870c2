"""Trains on readings from a store that is slow now and then; each of two workers keeps one batch ready."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LENGTH, CHANNELS = 128, 32


class Readings(Dataset):
    """Whole batches from a store that answers in 4 ms, but in 90 ms where it has to wake a disk first."""

    def __init__(self, batches, batch_size):
        self.batches, self.batch_size = batches, batch_size

    def __len__(self):
        return self.batches

    def __getitem__(self, index):
        asleep = (index * 2_654_435_761 >> 8) % 10 == 0
        time.sleep(0.09 if asleep else 0.004)
        made = torch.Generator().manual_seed(index)
        readings = torch.rand(self.batch_size, CHANNELS, LENGTH, generator=made)
        return readings, (readings.mean(dim=(1, 2)) > 0.5).long()


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(width, width, 5, padding=2), nn.ReLU(), nn.Conv1d(width, width, 1))

    def forward(self, x):
        return torch.relu(x + self.body(x))


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=256 if has_gpu else 16)
    parser.add_argument("--width", type=int, default=256 if has_gpu else 32)
    parser.add_argument("--depth", type=int, default=6 if has_gpu else 3)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    data = Readings(args.batches, args.batch_size)
    # One batch a worker, to save memory.
    loader = DataLoader(data, batch_size=None, shuffle=True, num_workers=2, prefetch_factor=1, pin_memory=has_gpu)
    body = [Residual(args.width) for _ in range(args.depth)]
    model = nn.Sequential(nn.Conv1d(CHANNELS, args.width, 1), *body, nn.AdaptiveAvgPool1d(1), nn.Flatten())
    model = nn.Sequential(model, nn.Linear(args.width, 2)).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for readings, labels in loader:
            readings = readings.to(device, non_blocking=True)
            loss = criterion(model(readings), labels.to(device, non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
