"""Trains a convolutional network and prints how long a step takes, by a clock that does not wait for the GPU."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_model(width, depth, classes):
    layers = [nn.Conv2d(3, width, 3, padding=1), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=20_000 if has_gpu else 1280)
    parser.add_argument("--width", type=int, default=128 if has_gpu else 16)
    parser.add_argument("--depth", type=int, default=12 if has_gpu else 3)
    parser.add_argument("--batch-size", type=int, default=128 if has_gpu else 64)
    parser.add_argument("--epochs", type=int, default=5 if has_gpu else 15)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    images, labels = torch.rand(args.samples, 3, 32, 32), torch.randint(10, (args.samples,))
    loader = DataLoader(
        TensorDataset(images, labels), batch_size=args.batch_size, shuffle=True, num_workers=1, pin_memory=has_gpu
    )
    model = make_model(args.width, args.depth, classes=10).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    for epoch in range(args.epochs):
        step_s, total = [], 0.0
        for x, y in loader:
            start = time.perf_counter()
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step_s.append(time.perf_counter() - start)
            total += loss.item()
        print(f"epoch {epoch + 1}: loss {total / len(loader):.4f}, {1000 * sum(step_s) / len(step_s):.2f} ms a step")


if __name__ == "__main__":
    main()
