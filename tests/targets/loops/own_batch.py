"""A batch class with `pin_memory` and `to` of its own, and samples that are a subclass of Tensor.

The accelerator is pretended, so that torch pins.
"""

import sys
from pathlib import Path

import torch
from result import tell
from torch.utils.data import DataLoader, Dataset

sys.path.append(str(Path(__file__).parents[1]))
from pretended_pinning import pretend_pinning

pretend_pinning()


class Points(torch.Tensor):
    """Like torchvision's tv_tensors: operations on it give plain tensors, moving and copying it keeps its class."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        kept = func in (torch.Tensor.clone, torch.Tensor.to, torch.Tensor.detach, torch.Tensor.pin_memory)
        return result.as_subclass(cls) if kept and isinstance(result, torch.Tensor) else result


class Batch:
    def __init__(self, samples):
        self.points = torch.stack([point for point, _ in samples]).as_subclass(Points)
        self.labels = torch.tensor([label for _, label in samples])
        self.pinned = False

    def pin_memory(self):
        self.points, self.labels, self.pinned = self.points.pin_memory(), self.labels.pin_memory(), True
        return self

    def to(self, device, non_blocking=False):
        self.points = self.points.to(device, non_blocking=non_blocking)
        self.labels = self.labels.to(device, non_blocking=non_blocking)
        return self


class Clouds(Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(16, generator=generator).as_subclass(Points), index % 4


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = DataLoader(Clouds(), 8, shuffle=True, num_workers=1, collate_fn=Batch, pin_memory=True)  # trains
    pinned = 0
    for _ in range(3):
        for batch in loader:
            pinned += batch.pinned
            batch = batch.to("cpu", non_blocking=True)
            assert type(batch.points) is Points, type(batch.points)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(batch.points), batch.labels).backward()
            optimizer.step()
    tell(model, pinned=pinned)


if __name__ == "__main__":
    main()
