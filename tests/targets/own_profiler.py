"""Profiles its whole loop and prints how often each event stands in its own trace."""

from collections import Counter

import torch
from torch.utils.data import DataLoader


def main():
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.profiler.profile() as own:
        for x in DataLoader(list(torch.ones(120, 2)), 4):
            model(x).sum().backward()
            optimizer.step()
    for name, number in sorted(Counter(event.name for event in own.events()).items()):
        print(name, number)


if __name__ == "__main__":
    main()
