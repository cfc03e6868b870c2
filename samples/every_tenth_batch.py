"""Trains on records kept in compressed shards of ten batches; every tenth batch waits until one is unpacked."""

import argparse
import time
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Shards(Dataset):
    """Records in compressed shards, read one after the other; the one in use is kept unpacked."""

    def __init__(self, shards, records, features):
        self.records, self.features = records, features
        whole = torch.randint(0, 16, (records, features), dtype=torch.uint8)
        self.shards = [zlib.compress(whole.roll(shard, 0).numpy().tobytes(), 1) for shard in range(shards)]
        self.current = None

    def __len__(self):
        return len(self.shards) * self.records

    def __getitem__(self, index):
        shard, record = divmod(index, self.records)
        if shard != self.current:
            unpacked = bytearray(zlib.decompress(self.shards[shard]))
            self.data = torch.frombuffer(unpacked, dtype=torch.uint8).view(self.records, self.features)
            self.current = shard
        return self.data[record].float() / 16, index % 10


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--features", type=int, default=16_384)
    parser.add_argument("--epochs", type=int, default=100)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    loader = DataLoader(Shards(args.shards, 10 * args.batch_size, args.features), args.batch_size)
    width = 4096 if has_gpu else 64
    model = nn.Sequential(nn.Linear(args.features, width), nn.ReLU(), nn.Linear(width, 10)).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for records, labels in loader:
            loss = criterion(model(records.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
