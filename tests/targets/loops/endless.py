"""An iterable dataset that never ends, cut by a number of steps; its workers share the rows."""

import itertools

import torch
from result import tell
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

STEPS = 120


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        first, stride = (info.id, info.num_workers) if info else (0, 1)
        for row in itertools.count(first, stride):
            generator = torch.Generator().manual_seed(row)
            yield torch.randn(16, generator=generator), row % 4


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = DataLoader(Stream(), batch_size=8, num_workers=1)  # trains
    for step, (x, y) in enumerate(loader):
        if step == STEPS:
            break
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    tell(model)


if __name__ == "__main__":
    main()
