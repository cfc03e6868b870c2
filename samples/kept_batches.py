"""Trains a small network and keeps the labels of every batch, to count them when the epoch is over."""

import argparse
import resource
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

OPEN_FILES = 16_384
"""As many as the shells of some clusters allow; the labels of each batch hold one while they live."""


class Images(Dataset):
    """Random images, made as they are asked for."""

    def __init__(self, samples, size):
        self.samples, self.size = samples, size

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        return torch.rand(3, self.size, self.size), index % 10


def make_model(width, depth):
    layers = [nn.Conv2d(3, width, 3, padding=1), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=3_000_000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, most))
    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    workers = 4 if has_gpu else 1
    loader = DataLoader(Images(args.samples, 96 if has_gpu else 32), args.batch_size, num_workers=workers)
    model = make_model(128 if has_gpu else 16, depth=6 if has_gpu else 3).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    for epoch in range(args.epochs):
        start = time.time()
        kept = []
        total = torch.zeros((), device=device)
        for images, labels in loader:
            loss = criterion(model(images.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            kept.append(labels)
            total += loss.detach()
        counts = torch.cat(kept).bincount(minlength=10).tolist()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {counts}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
