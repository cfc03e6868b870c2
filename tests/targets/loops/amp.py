"""Mixed precision with GradScaler and accumulated gradients, the last ones of an epoch by an `if`."""

import torch
from result import tell
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATED = 3


def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    data = TensorDataset(torch.randn(320, 16), torch.randint(0, 4, (320,)))
    loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=1)  # trains
    for _ in range(3):
        for step, (x, y) in enumerate(loader):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(model(x), y) / ACCUMULATED
            scaler.scale(loss).backward()
            if (step + 1) % ACCUMULATED == 0 or step + 1 == len(loader):
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
    tell(model, scale=scaler.get_scale())


if __name__ == "__main__":
    main()
