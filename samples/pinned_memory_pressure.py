"""Trains on large images in large batches; what eight workers keep ready of them fills much of the memory."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

KEPT = 32


class LargeImages(Dataset):
    """Images of 3 MB each, which repeat: it is their batches that take memory."""

    def __init__(self, samples):
        self.images, self.samples = torch.rand(KEPT, 3, 512, 512), samples

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        return self.images[index % KEPT], index % 10


def make_model(width, depth):
    layers = [nn.Conv2d(3, width, 16, stride=16), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=21120 if has_gpu else 400)
    parser.add_argument("--batch-size", type=int, default=352 if has_gpu else 8)
    parser.add_argument("--width", type=int, default=128 if has_gpu else 64)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    loader = DataLoader(
        LargeImages(args.samples),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=8 if has_gpu else 1,
        pin_memory=has_gpu,
        prefetch_factor=2,
    )
    model = make_model(args.width, args.depth).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for images, labels in loader:
            images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
