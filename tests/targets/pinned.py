"""A loader with pin_memory on a machine whose accelerator is pretended: the pin thread runs, its times mean nothing."""

import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.accelerator.is_available = lambda: True
torch.accelerator.current_accelerator = lambda *_: torch.device("cuda")
torch.accelerator.current_device_index = lambda: 0
torch.accelerator.set_device_index = lambda *_: None
torch.Tensor.pin_memory = lambda self, *_: self.clone()


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
