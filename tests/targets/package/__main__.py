"""Trains, and fails when asked to."""

import sys

import torch
from torch.utils.data import DataLoader

from . import __name__ as package


def main():
    print(package, __name__, __spec__.name, sys.argv, sys.path[0])
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x in DataLoader(torch.zeros(32, 4), batch_size=4, num_workers=1, multiprocessing_context="spawn"):
        model(x).sum().backward()
        optimizer.step()
    if sys.argv[1:] == ["fail"]:
        raise ValueError("by -m")


if __name__ == "__main__":
    main()
