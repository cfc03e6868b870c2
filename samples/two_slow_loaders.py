"""Trains a small network on images with a background mixed in: both loaders work in the training process."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Patches(Dataset):
    """Patches of a noisy texture, smoothed when they are read; how often depends on how much work reading is to be."""

    def __init__(self, samples, size, smoothings):
        self.samples, self.size, self.smoothings = samples, size, smoothings
        self.texture = torch.rand(3, 512, 512)
        self.kernel = torch.ones(3, 1, 5, 5) / 25

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        top, left = index * 7 % (512 - self.size), index * 13 % (512 - self.size)
        patch = self.texture[:, top : top + self.size, left : left + self.size]
        for _ in range(self.smoothings):
            patch = F.conv2d(patch, self.kernel, padding=2, groups=3)
        return patch.clone(), index % 10


def make_model(width, depth, stride):
    layers = [nn.Conv2d(3, width, stride, stride=stride), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=64_000 if has_gpu else 12_800)
    parser.add_argument("--size", type=int, default=64 if has_gpu else 32)
    parser.add_argument("--width", type=int, default=32 if has_gpu else 8)
    parser.add_argument("--depth", type=int, default=4 if has_gpu else 2)
    parser.add_argument("--batch-size", type=int, default=64 if has_gpu else 32)
    parser.add_argument("--epochs", type=int, default=3 if has_gpu else 2)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    loader = DataLoader(Patches(args.samples, args.size, smoothings=4), args.batch_size, shuffle=True)
    backgrounds = DataLoader(Patches(args.samples, args.size, smoothings=2), args.batch_size, shuffle=True)
    model = make_model(args.width, args.depth, stride=4).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for (background, _), (x, y) in zip(backgrounds, loader):
            mixed = 0.8 * x.to(device) + 0.2 * background.to(device)
            loss = F.cross_entropy(model(mixed), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
