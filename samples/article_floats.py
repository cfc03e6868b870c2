"""Trains a linear classifier on images of 224 x 224 x 3 floats that lie in memory."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

IMAGE_FLOATS = 224 * 224 * 3


class FloatImages(Dataset):
    """Random images; 602 kB each, all of them made at the start."""

    def __init__(self, samples, classes):
        self.images = torch.rand(samples, IMAGE_FLOATS)
        self.labels = torch.randint(classes, (samples,))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=5000 if has_gpu else 640)
    parser.add_argument("--epochs", type=int, default=5 if has_gpu else 20)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--workers", type=int, default=4)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    dataset = FloatImages(args.samples, classes=10)
    loader = DataLoader(
        dataset,
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        pin_memory=False,
    )

    model = nn.Linear(IMAGE_FLOATS, 10).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for images, labels in loader:
            images = images.to(device)
            labels = labels.to(device)
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
