"""A script that moves its batches to a pretended device, changes them there and reads each step's loss from it."""

import sys

import torch
from pretended_device import DEVICE, Moves
from pretended_events import pretend_events
from torch.utils.data import DataLoader, TensorDataset

# bound before this script runs
sys.modules["pindiag_probe.replay"]._pin = torch.Tensor.clone


def main():
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = TensorDataset(torch.rand(256, 8), torch.zeros(256, dtype=torch.long))
    for _ in range(10_000):
        for x, y in DataLoader(data, batch_size=8, num_workers=int(sys.argv[1])):
            there = x.to(DEVICE)
            assert float(there.host.max()) < 1, "a batch that was changed before"
            if "in_place" in sys.argv:
                there.add_(100)
            loss = torch.nn.functional.cross_entropy(model(there.host), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            loss.detach().to(DEVICE).item()  # the step's loss


if __name__ == "__main__":
    pretend_events()
    with Moves():
        main()
