"""torch.compile with fullgraph=True around the step, the move of its batch included."""

import torch
from result import tell
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def loss_of(x, y):
        x = x.to("cpu", torch.float32, non_blocking=True)
        return torch.nn.functional.cross_entropy(model(x), y.to("cpu"))

    data = TensorDataset(torch.randn(320, 16).double(), torch.randint(0, 4, (320,)))
    loader = DataLoader(data, batch_size=8, shuffle=True)  # trains
    for _ in range(3):
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            loss_of(x, y).backward()
            optimizer.step()
    tell(model)


if __name__ == "__main__":
    main()
