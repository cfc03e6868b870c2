"""Sets the start method that its argument names for the whole program."""

import multiprocessing
import sys

import torch
from result import tell
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, index):
        return torch.full((16,), index / 320), index % 4


def main():
    multiprocessing.set_start_method(sys.argv[1])
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = DataLoader(Rows(), batch_size=8, shuffle=True, num_workers=1, persistent_workers=True)  # trains
    for _ in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    tell(model, method=multiprocessing.get_start_method())


if __name__ == "__main__":
    main()
