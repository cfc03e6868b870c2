"""Trains a convolutional network on batches that pass through one buffer of pinned memory."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_model(width, depth, stride):
    layers = [nn.Conv2d(3, width, stride, stride=stride), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=12_800 if has_gpu else 1280)
    parser.add_argument("--size", type=int, default=64 if has_gpu else 32)
    parser.add_argument("--width", type=int, default=128 if has_gpu else 32)
    parser.add_argument("--depth", type=int, default=10 if has_gpu else 6)
    parser.add_argument("--batch-size", type=int, default=128 if has_gpu else 64)
    parser.add_argument("--epochs", type=int, default=20 if has_gpu else 15)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    data = TensorDataset(torch.rand(args.samples, 3, args.size, args.size), torch.randint(10, (args.samples,)))
    loader = DataLoader(data, args.batch_size, shuffle=True, num_workers=4 if has_gpu else 1, drop_last=True)
    images = torch.empty(args.batch_size, 3, args.size, args.size, pin_memory=has_gpu)
    labels = torch.empty(args.batch_size, dtype=torch.long, pin_memory=has_gpu)
    model = make_model(args.width, args.depth, stride=4).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for x, y in loader:
            images.copy_(x)
            labels.copy_(y)
            loss = F.cross_entropy(model(images.to(device, non_blocking=True)), labels.to(device, non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
