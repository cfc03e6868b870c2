"""Trains a head on the codes of a frozen linear encoder, which stays on the CPU to spare the GPU's memory."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_encoder(features, hidden):
    encoder = nn.Sequential(nn.Linear(features, hidden), nn.Linear(hidden, features))
    return encoder.requires_grad_(False).eval()


def make_head(features, hidden, classes):
    return nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, classes))


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    big = device.type == "cuda"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=60_000 if big else 12_000)
    parser.add_argument("--features", type=int, default=1024 if big else 512)
    parser.add_argument("--hidden", type=int, default=2048 if big else 1024)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=512 if big else 128)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()

    torch.manual_seed(0)
    data = TensorDataset(torch.randn(args.samples, args.features), torch.randint(args.classes, (args.samples,)))
    loader = DataLoader(data, batch_size=args.batch_size, shuffle=True, num_workers=2, pin_memory=True)

    encoder = make_encoder(args.features, args.hidden)
    head = make_head(args.features, args.hidden, args.classes).to(device)
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for x, y in loader:
            with torch.no_grad():
                codes = encoder(x)
            loss = F.cross_entropy(head(codes.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
