"""Trains on jittered images; its workers are bound to cores, and all of them to the same one."""

import argparse
import os
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Jittered(Dataset):
    """Images from a noisy texture, blurred when they are read."""

    def __init__(self, samples, size, blurs):
        self.samples, self.size, self.blurs = samples, size, blurs
        self.texture = torch.rand(3, 512, 512)
        self.kernel = torch.ones(3, 1, 5, 5) / 25

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        top, left = index * 7 % (512 - self.size), index * 13 % (512 - self.size)
        image = self.texture[:, top : top + self.size, left : left + self.size]
        for _ in range(self.blurs):
            image = F.conv2d(image, self.kernel, padding=2, groups=3)
        return image.clone(), index % 10


def bind(worker):
    """As an OpenMP runtime does that was told to bind its threads: one core for each process."""
    first_core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {first_core})


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=6400 if has_gpu else 2560)
    parser.add_argument("--workers", type=int, default=8 if has_gpu else 2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    size = 64 if has_gpu else 32
    dataset = Jittered(args.samples, size, blurs=8)
    loader = DataLoader(dataset, args.batch_size, shuffle=True, num_workers=args.workers, worker_init_fn=bind)
    classify = nn.Linear(32 * (size // 8) ** 2, 10)
    model = nn.Sequential(nn.Conv2d(3, 32, 8, stride=8), nn.ReLU(), nn.Flatten(), classify).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for images, labels in loader:
            loss = F.cross_entropy(model(images.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
