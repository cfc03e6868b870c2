"""Trains a small network on patches, and validates it after each epoch: both loaders work in the training process."""

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
    parser.add_argument("--samples", type=int, default=3200 if has_gpu else 640)
    parser.add_argument("--size", type=int, default=64 if has_gpu else 32)
    parser.add_argument("--width", type=int, default=32 if has_gpu else 8)
    parser.add_argument("--depth", type=int, default=4 if has_gpu else 2)
    parser.add_argument("--batch-size", type=int, default=64 if has_gpu else 32)
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    loader = DataLoader(Patches(args.samples, args.size, smoothings=4), args.batch_size, shuffle=True)
    validation = DataLoader(Patches(args.samples // 2, args.size, smoothings=4), args.batch_size)
    model = make_model(args.width, args.depth, stride=4).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    for epoch in range(args.epochs):
        start = time.time()
        for x, y in loader:
            loss = F.cross_entropy(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        right = torch.zeros((), device=device)
        with torch.no_grad():
            for x, y in validation:
                right += (model(x.to(device)).argmax(1) == y.to(device)).sum()
        print(f"epoch {epoch + 1}: accuracy {right.item() / len(validation.dataset):.3f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
