"""Trains a recurrent network on a stream of sequences, which one worker writes as fast as they are read."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Walks(IterableDataset):
    """Random walks, and whether they end above where they began."""

    def __init__(self, samples, length):
        self.samples, self.length = samples, length

    def __iter__(self):
        for _ in range(self.samples):
            walk = torch.randn(self.length, 1).cumsum(0)
            yield walk, (walk[-1] > 0).float()


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=51_200 if has_gpu else 6400)
    parser.add_argument("--length", type=int, default=256 if has_gpu else 64)
    parser.add_argument("--hidden", type=int, default=1024 if has_gpu else 64)
    parser.add_argument("--batch-size", type=int, default=128 if has_gpu else 64)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    loader = DataLoader(Walks(args.samples, args.length), args.batch_size, num_workers=1, pin_memory=has_gpu)
    network = nn.GRU(1, args.hidden, num_layers=2, batch_first=True).to(device)
    last = nn.Linear(args.hidden, 1).to(device)
    optimizer = torch.optim.Adam([*network.parameters(), *last.parameters()], lr=1e-3)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for walks, above in loader:
            states, _ = network(walks.to(device, non_blocking=True))
            loss = F.binary_cross_entropy_with_logits(last(states[:, -1]), above.to(device, non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        mean = total.item() * args.batch_size / args.samples
        print(f"epoch {epoch + 1}: loss {mean:.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
