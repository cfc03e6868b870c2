"""Trains a classifier on images that NumPy whitens in the workers, each of them with BLAS threads of its own."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Whitened(Dataset):
    """Noisy images cut into patches and whitened: a product of two matrices a sample, in float32."""

    def __init__(self, samples, patches, features):
        self.samples, self.patches, self.features = samples, patches, features
        whitening = np.random.default_rng(0).standard_normal((features, features))
        self.whitening = (whitening / features**0.5).astype(np.float32)

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        image = np.random.default_rng(index).standard_normal((self.patches, self.features), dtype=np.float32)
        return torch.from_numpy((image @ self.whitening).mean(axis=0)), index % 10


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=20_000 if has_gpu else 2_000)
    parser.add_argument("--workers", type=int, default=8 if has_gpu else 2)
    parser.add_argument("--batch-size", type=int, default=64 if has_gpu else 8)
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    features = 768 if has_gpu else 256
    dataset = Whitened(args.samples, 64 if has_gpu else 32, features)
    loader = DataLoader(dataset, args.batch_size, shuffle=True, num_workers=args.workers)
    model = nn.Sequential(nn.Linear(features, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for images, labels in loader:
            loss = criterion(model(images.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
