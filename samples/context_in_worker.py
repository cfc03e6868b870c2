"""Trains on images that spawned workers turn and crop on the GPU, and hand back as CPU tensors."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class TurnedOnDevice(Dataset):
    """Images that are augmented by the device, wherever they are fetched."""

    def __init__(self, samples, device):
        self.images = (torch.rand(samples, 3, 72, 72) * 255).byte()
        self.labels = torch.randint(10, (samples,))
        self.device = device

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index].to(self.device).float() / 255
        top, left = torch.randint(8, (2,)).tolist()
        image = torch.rot90(image[:, top : top + 64, left : left + 64], index % 4, dims=(1, 2))
        return image.cpu(), self.labels[index]


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=20_000 if has_gpu else 4096)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    loader = DataLoader(
        TurnedOnDevice(args.samples, device),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=2,
        pin_memory=has_gpu,
        persistent_workers=True,
        multiprocessing_context="spawn",
    )
    layers = [nn.Conv2d(3, 16, 5, stride=4), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

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
