"""LBFGS, which calls a closure several times a step."""

import torch
from result import tell
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
    loader = DataLoader(TensorDataset(torch.randn(320, 16), torch.randn(320, 1)), batch_size=8, shuffle=True)  # trains
    evaluations = 0
    for _ in range(3):
        for x, y in loader:

            def closure():
                nonlocal evaluations
                evaluations += 1
                optimizer.zero_grad()
                loss = torch.nn.functional.mse_loss(model(x), y)  # noqa: B023
                loss.backward()
                return loss

            optimizer.step(closure)
    tell(model, evaluations=evaluations)


if __name__ == "__main__":
    main()
