"""Few labelled batches, and for each of them a pass over the unlabelled ones, which is what steps."""

import torch
from result import tell
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    labelled = DataLoader(TensorDataset(torch.randn(48, 16), torch.randint(0, 4, (48,))), batch_size=8, shuffle=True)
    unlabelled = DataLoader(TensorDataset(torch.randn(112, 16)), batch_size=8, shuffle=True)  # trains
    for _ in range(2):
        for x, y in labelled:
            for (z,) in unlabelled:
                optimizer.zero_grad()
                logits = model(z)
                consistency = -(logits.softmax(1) * logits.log_softmax(1)).sum(1).mean()
                (torch.nn.functional.cross_entropy(model(x), y) + 0.1 * consistency).backward()
                optimizer.step()
    tell(model)


if __name__ == "__main__":
    main()
