"""A loader with pin_memory on a machine whose accelerator is pretended: the pin thread runs, its times mean nothing."""

import sys

import torch
from pretended_pinning import pretend_pinning
from torch.utils.data import DataLoader, TensorDataset

pretend_pinning()


def main():
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = TensorDataset(torch.zeros(256, 8), torch.zeros(256, dtype=torch.long))
    for _ in range(1000):
        for x, y in DataLoader(data, batch_size=8, num_workers=int(sys.argv[1]), pin_memory=True):
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
