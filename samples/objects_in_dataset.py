"""Trains on records that the dataset keeps as a list of Python objects, of which each worker comes to have a copy."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

COLUMNS = 16


class Records(Dataset):
    """Rows of a table as a CSV reader gives them: a dictionary of texts each."""

    def __init__(self, records):
        numbers = torch.randint(1000, (records, COLUMNS)).tolist()
        self.records = [{f"c{column}": str(number) for column, number in enumerate(row)} for row in numbers]

    def __len__(self):
        return len(self.records)

    def __getitem__(self, index):
        row = torch.tensor([int(text) / 1000 for text in self.records[index].values()])
        return row, (row.mean() > 0.5).long()


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--width", type=int, default=8192 if has_gpu else 1024)
    parser.add_argument("--depth", type=int, default=8 if has_gpu else 3)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    data = Records(args.records)
    loader = DataLoader(data, args.batch_size, shuffle=True, num_workers=2, pin_memory=has_gpu)
    layers = [nn.Linear(COLUMNS, args.width), nn.ReLU()]
    for _ in range(args.depth):
        layers += [nn.Linear(args.width, args.width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(args.width, 2)).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for rows, labels in loader:
            rows = rows.to(device, non_blocking=True)
            loss = criterion(model(rows), labels.to(device, non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
