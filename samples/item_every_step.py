"""Trains a small classifier and keeps its running loss and accuracy as Python numbers, read in each step."""

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
    parser.add_argument("--samples", type=int, default=60_000 if has_gpu else 2560)
    parser.add_argument("--width", type=int, default=32 if has_gpu else 8)
    parser.add_argument("--depth", type=int, default=6 if has_gpu else 3)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=10 if has_gpu else 15)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    images, labels = torch.rand(args.samples, 3, 32, 32), torch.randint(10, (args.samples,))
    loader = DataLoader(
        TensorDataset(images, labels),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=4 if has_gpu else 1,
        pin_memory=has_gpu,
        persistent_workers=True,
    )
    model = make_model(args.width, args.depth, classes=10).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        start = time.time()
        running_loss, correct = 0.0, 0
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            scores = model(x)
            loss = F.cross_entropy(scores, y)
            running_loss += loss.item()
            correct += (scores.argmax(1) == y).sum().item()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        loss, accuracy = running_loss / len(loader), correct / args.samples
        print(f"epoch {epoch + 1}: loss {loss:.4f}, accuracy {accuracy:.3f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
