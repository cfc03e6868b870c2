"""A loop that counts its batches, and so never asks for one too many."""

import torch
from result import tell
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = TensorDataset(torch.randn(320, 16), torch.randint(0, 4, (320,)))
    loader = DataLoader(data, batch_size=8, shuffle=True)  # trains
    for _ in range(3):
        batches = iter(loader)
        for _ in range(len(loader)):
            x, y = next(batches)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    tell(model)


if __name__ == "__main__":
    main()
