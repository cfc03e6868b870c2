"""Trains a deep, narrow network on small batches that are ready in memory: each of its many kernels is over at once."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.expand, self.contract = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.contract(F.gelu(self.expand(self.norm(x))))


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=80_000 if has_gpu else 6400)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--blocks", type=int, default=24 if has_gpu else 8)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    data = TensorDataset(torch.randn(args.samples, args.features), torch.randint(10, (args.samples,)))
    batches = BatchSampler(RandomSampler(data), args.batch_size, drop_last=True)
    loader = DataLoader(data, sampler=batches, batch_size=None, pin_memory=has_gpu)

    blocks = [Block(args.features) for _ in range(args.blocks)]
    model = nn.Sequential(*blocks, nn.Linear(args.features, 10)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for x, y in loader:
            loss = F.cross_entropy(model(x.to(device, non_blocking=True)), y.to(device, non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
