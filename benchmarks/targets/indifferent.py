"""Trains for ever on rows that cost nothing to load: a step is the main thread's own work, whatever the loader is."""

import torch
from torch.utils.data import DataLoader, TensorDataset

WIDTH = 512
LAYERS = 6


def main():
    """Train."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rows = TensorDataset(torch.randn(4096, 8), torch.randint(0, 4, (4096,)))
    loader = DataLoader(rows, batch_size=64, shuffle=True, num_workers=1)
    hidden = [layer for _ in range(LAYERS) for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())]
    model = torch.nn.Sequential(torch.nn.Linear(8, WIDTH), *hidden, torch.nn.Linear(WIDTH, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    while True:
        for inputs, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
