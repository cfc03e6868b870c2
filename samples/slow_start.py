"""Trains on short epochs; each worker reads an index of its dataset first, and the workers are new in every epoch."""

import argparse
import pickle
import tempfile
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Archive(Dataset):
    """Opens its index where it is first asked for a sample, so that no handle is shared between workers."""

    def __init__(self, path, samples):
        self.path, self.samples = path, samples
        self.index = None

    def __len__(self):
        return self.samples

    def __getitem__(self, number):
        if self.index is None:
            with open(self.path, "rb") as file:
                self.index = {name: place for place, name in enumerate(pickle.load(file))}
        seed = self.index[f"sample-{number:08d}"]
        image = torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(seed))
        return image, seed % 10


def write_index(folder, entries):
    path = f"{folder}/index.pickle"
    with open(path, "wb") as file:
        pickle.dump([f"sample-{number:08d}" for number in range(entries)], file)
    return path


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=400_000)
    parser.add_argument("--samples", type=int, default=4096 if has_gpu else 1024)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU())
    model = nn.Sequential(*model, nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    with tempfile.TemporaryDirectory() as folder:
        data = Archive(write_index(folder, args.entries), args.samples)
        loader = DataLoader(data, args.batch_size, shuffle=True, num_workers=2, pin_memory=has_gpu)
        for epoch in range(args.epochs):
            start = time.time()
            total = torch.zeros((), device=device)
            for images, labels in loader:
                images = images.to(device, non_blocking=True)
                loss = F.cross_entropy(model(images), labels.to(device, non_blocking=True))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.detach()
            print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
