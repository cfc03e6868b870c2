"""Trains a deep, narrow network on images that the training loop itself copies into pinned memory, batch by batch."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    """Images that lie in memory, ready for the network."""

    def __init__(self, samples, size):
        self.images, self.labels = torch.rand(samples, 3, size, size), torch.randint(10, (samples,))

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


def make_model(width, depth, stride):
    layers = [nn.Conv2d(3, width, stride, stride=stride), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=4000 if has_gpu else 640)
    parser.add_argument("--size", type=int, default=160 if has_gpu else 64)
    parser.add_argument("--width", type=int, default=16 if has_gpu else 32)
    parser.add_argument("--depth", type=int, default=80 if has_gpu else 12)
    parser.add_argument("--batch-size", type=int, default=64 if has_gpu else 32)
    parser.add_argument("--epochs", type=int, default=20 if has_gpu else 10)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    workers = 4 if has_gpu else 1
    loader = DataLoader(Images(args.samples, args.size), args.batch_size, shuffle=True, num_workers=workers)
    model = make_model(args.width, args.depth, stride=8).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for x, y in loader:
            if has_gpu:
                x, y = x.pin_memory(), y.pin_memory()
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
