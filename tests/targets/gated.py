"""Training loops whose batches other arguments of the loader leave alone, or spoil; the first argument names one."""

import itertools
import os
import random
import struct
import sys
import tempfile
import time
import zipfile

import torch
from pretended_device import DEVICE, Moves
from torch.utils.data import DataLoader, Dataset, IterableDataset

ROWS = 512
WIDTH = 256


class Plain(Dataset):
    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        return torch.full((WIDTH,), float(index)), f"row {index}"


class Augmenting(Plain):
    def __getitem__(self, index):
        return torch.full((WIDTH,), index + random.random()), f"row {index}"


class OpenFile(Plain):
    """Seeks and reads, slowly, in a file that was opened before workers are forked."""

    def __init__(self):
        path = os.path.join(tempfile.mkdtemp(), "rows.bin")
        with open(path, "wb") as rows:
            for index in range(ROWS):
                rows.write(struct.pack("<q", index) * WIDTH)
        self.rows = open(path, "rb", buffering=0)  # noqa: SIM115

    def __getitem__(self, index):
        self.rows.seek(index * 8 * WIDTH)
        time.sleep(0.001)
        row = self.rows.read(8 * WIDTH).ljust(8 * WIDTH, b"\0")
        return torch.tensor(struct.unpack(f"<{WIDTH}q", row)), f"row {index}"


class Unread(Plain):
    """Keeps a file open that it reads no more, and an archive that it does not read."""

    def __init__(self):
        path = os.path.join(tempfile.mkdtemp(), "names.zip")
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("names", "all of them")
        self.archive = zipfile.ZipFile(path)
        self.source = open(__file__)  # noqa: SIM115
        self.source.readline()


class Unsplit(IterableDataset):
    def __iter__(self):
        return (torch.full((WIDTH,), float(index)) for index in range(10**6))


class OneBuffer:
    """A collate_fn that fills the same tensor again and again."""

    def __init__(self):
        self.buffer = torch.empty(8, WIDTH)
        pretended.add(self.buffer.data_ptr())

    def __call__(self, rows):
        torch.stack([row for row, _ in rows], out=self.buffer)
        return self.buffer, [name for _, name in rows]


pretended = set()
"""Addresses of tensors that pass for pinned ones."""


def train(loader, move=lambda batch: batch):
    model = torch.nn.Linear(WIDTH, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    for _ in range(1000):
        for batch in loader:
            rows = batch[0] if isinstance(batch, list | tuple) else batch
            optimizer.zero_grad()
            model(move(rows).float()).sum().backward()
            optimizer.step()


def move(rows):
    with Moves():
        return rows.to(DEVICE).host


def plain():
    train(DataLoader(Plain(), batch_size=8, shuffle=True))


def augmenting():
    train(DataLoader(Augmenting(), batch_size=8, shuffle=True))


def open_file():
    train(DataLoader(OpenFile(), batch_size=8, shuffle=True))


def unread():
    train(DataLoader(Unread(), batch_size=8))


def unsplit():
    train(DataLoader(Unsplit(), batch_size=8))


def one_buffer():
    torch.Tensor.is_pinned = lambda tensor, *_: tensor.data_ptr() in pretended
    train(DataLoader(Plain(), batch_size=8, collate_fn=OneBuffer()), move)


def staging():
    """Copies each batch into one pinned buffer on its way."""
    torch.Tensor.is_pinned = lambda tensor, *_: tensor.data_ptr() in pretended
    buffer = torch.empty(8, WIDTH)
    pretended.add(buffer.data_ptr())
    train(DataLoader(Plain(), batch_size=8), lambda rows: move(buffer.copy_(rows)))


def waiting():
    """The same, but for a wait after each step."""
    torch.Tensor.is_pinned = lambda tensor, *_: tensor.data_ptr() in pretended
    buffer = torch.empty(8, WIDTH)
    pretended.add(buffer.data_ptr())

    def move_and_wait(rows):
        with Moves():
            moved = buffer.copy_(rows).to(DEVICE)
            moved.sum().item()
        return moved.host

    train(DataLoader(Plain(), batch_size=8), move_and_wait)


def mended():
    """Changes each batch in place after it was copied."""
    steps = itertools.count()

    def move_and_change(rows):
        moved = move(rows)
        rows.fill_(next(steps))
        return moved

    train(DataLoader(Plain(), batch_size=8), move_and_change)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
