"""Trains for ever on rows that cost nothing to load: a step is long work of the main thread, whatever the loader is."""

import torch
from torch.utils.data import DataLoader, TensorDataset

WIDTH = 512
LAYERS = 6
REPEATS = 12
"""How often each row stands in the batch that the model sees: a step takes far longer than handing a batch over."""


def main():
    """Train."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rows = TensorDataset(torch.randn(4096, 8), torch.randint(0, 4, (4096,)))
    loader = DataLoader(rows, batch_size=64, shuffle=True)
    hidden = [layer for _ in range(LAYERS) for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())]
    model = torch.nn.Sequential(torch.nn.Linear(8, WIDTH), *hidden, torch.nn.Linear(WIDTH, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    while True:
        for inputs, labels in loader:
            logits = model(inputs.repeat(REPEATS, 1))
            loss = torch.nn.functional.cross_entropy(logits, labels.repeat(REPEATS))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
