"""Training loops that write down which samples each step got.

Arguments: style, workers, epochs, where to write; then those of the next training, if there is one.
"""

import itertools
import sys
import time

import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, DistributedSampler, RandomSampler

ROWS, BATCH = 40, 4


class Rows(Dataset):
    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        return index, torch.full((4,), float(index))


class Holed(Rows):
    def __getitem__(self, index):
        if index % 13 == 5:
            raise LookupError(index)
        return super().__getitem__(index)


class EagerSampler:
    """Draws its seed when it is asked for an iterator, not when the first index is drawn."""

    def __len__(self):
        return ROWS

    def __iter__(self):
        return iter(torch.randperm(ROWS).tolist())


def arguments(style):
    if style == "batch_sampler":
        return {"batch_sampler": BatchSampler(RandomSampler(Rows()), BATCH, drop_last=False)}
    if style in ("distributed", "distributed_by_count"):
        return {"batch_size": BATCH, "sampler": DistributedSampler(Rows(), num_replicas=1, rank=0)}
    if style == "generator":
        return {"batch_size": BATCH, "shuffle": True, "generator": torch.Generator().manual_seed(5)}
    if style == "eager":
        return {"batch_size": BATCH, "sampler": EagerSampler()}
    if style == "single":
        return {"batch_size": None, "sampler": RandomSampler(Rows())}
    if style == "out_of_order":
        return {"batch_size": BATCH, "shuffle": True, "in_order": False}
    return {"batch_size": BATCH, "shuffle": True, "persistent_workers": style == "persistent"}


def whole(loader):
    """All batches that can be made; the others are passed over."""
    batches = iter(loader)
    while True:
        try:
            yield next(batches)
        except StopIteration:
            return
        except LookupError:
            continue


def train(style, workers, epochs, path):
    torch.manual_seed(1)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    loader = DataLoader(Holed() if style == "holed" else Rows(), num_workers=workers, **arguments(style))
    by_count = style.endswith("by_count")
    served = whole if style == "holed" else iter
    with open(path, "w") as file:
        for epoch in range(epochs):
            if style.startswith("distributed"):
                loader.sampler.set_epoch(epoch)
            for index, rows in itertools.islice(loader, ROWS // BATCH) if by_count else served(loader):
                model(rows).sum().backward()
                optimizer.step()
                time.sleep(0.001)
                print(*index.reshape(-1).tolist() if torch.is_tensor(index) else [index], file=file, flush=True)
        print("random", torch.initial_seed(), torch.rand(1).item(), file=file)


if __name__ == "__main__":
    words = iter(sys.argv[1:])
    for style, workers, epochs, path in zip(words, words, words, words):
        train(style, int(workers), int(epochs), path)
