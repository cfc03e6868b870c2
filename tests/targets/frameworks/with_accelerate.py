"""Accelerate prepares model, optimizer, loader and schedule, and accumulates gradients."""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset


def main():
    set_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Dropout(0.1), torch.nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(320, 16), torch.randint(0, 4, (320,)))
    loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=1)  # trains
    check = DataLoader(TensorDataset(torch.randn(40, 16)), batch_size=8)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=60)
    model, optimizer, loader, check, schedule = accelerator.prepare(model, optimizer, loader, check, schedule)
    for _ in range(3):
        model.train()
        for x, y in loader:
            with accelerator.accumulate(model):
                accelerator.backward(torch.nn.functional.cross_entropy(model(x), y))
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            logits = torch.cat([accelerator.gather_for_metrics(model(x)) for (x,) in check])
    accelerator.end_training()
    total = sum(parameter.double().sum().item() for parameter in model.parameters())
    print("result", len(logits), repr(logits.sum().item()), repr(total))


if __name__ == "__main__":
    main()
