"""torchdata's StatefulDataLoader, whose place is saved with each checkpoint, at first before an epoch."""

import sys

import torch
from torch.utils.data import TensorDataset
from torchdata.stateful_dataloader import StatefulDataLoader


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = TensorDataset(torch.randn(320, 16), torch.randint(0, 4, (320,)))
    loader = StatefulDataLoader(data, batch_size=8, shuffle=True, num_workers=int(sys.argv[1]))  # trains
    torch.save({"model": model.state_dict(), "loader": loader.state_dict()}, "checkpoint.pt")
    step = 0
    for _ in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            step += 1
            if step % 10 == 0:
                torch.save({"model": model.state_dict(), "loader": loader.state_dict()}, "checkpoint.pt")
    total = sum(parameter.double().sum().item() for parameter in model.parameters())
    print("result", step, repr(total))


if __name__ == "__main__":
    main()
