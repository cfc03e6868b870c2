"""Saves by safetensors every few steps, over what it saved before, and resumes from a checkpoint if there is one."""

import os

import torch
from result import tell
from safetensors.torch import load_file, save_file
from torch.utils.data import DataLoader, TensorDataset

PATH = "model.safetensors"


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 4)
    if os.path.exists(PATH):
        model.load_state_dict(load_file(PATH))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = TensorDataset(torch.randn(320, 16), torch.randint(0, 4, (320,)))
    loader = DataLoader(data, batch_size=8, shuffle=True)  # trains
    step = 0
    for _ in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            step += 1
            if step % 10 == 0:
                save_file(model.state_dict(), PATH, metadata={"step": str(step)})
    tell(model, equal=torch.equal(load_file(PATH)["weight"], model.state_dict()["weight"]))


if __name__ == "__main__":
    main()
