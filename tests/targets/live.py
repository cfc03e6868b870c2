"""Training loops that show what a change of treatment does to them; the first argument names one."""

import itertools
import json
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
import zlib

import torch
from pretended_pinning import pretend_pinning
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Rows(Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, index):
        time.sleep(0.0002)
        return torch.full((4,), float(index))


class Caching(Rows):
    def __init__(self):
        self.read = {}

    def __getitem__(self, index):
        if index not in self.read:
            self.read[index] = super().__getitem__(index)
        return self.read[index]


class Dying(Rows):
    def __getitem__(self, index):
        if get_worker_info() is not None and get_worker_info().num_workers == 2 and index > 40:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)


class Raising(Rows):
    def __getitem__(self, index):
        if get_worker_info() is not None and get_worker_info().num_workers == 2 and index > 40:
            raise LookupError(f"row {index} is missing")
        return super().__getitem__(index)


class Few(Raising):
    def __len__(self):
        return 64


class Sleepy(Rows):
    """Its workers fall asleep at their eighth row."""

    served = 0

    def __getitem__(self, index):
        if get_worker_info() is not None:
            self.served += 1
            time.sleep(60 if self.served >= 8 else 0)
        return super().__getitem__(index)


class Unpicklable(Rows):
    def __init__(self):
        self.change = lambda row: row


def train(loader, after_step=lambda: None, epochs=1000):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(epochs):
        for rows in loader:
            optimizer.zero_grad()
            model(rows).sum().backward()
            optimizer.step()
            after_step()


def caching():
    train(DataLoader(Caching(), batch_size=4))


def dying():
    train(DataLoader(Dying(), batch_size=4))


def raising():
    train(DataLoader(Raising(), batch_size=4))


def raising_later():
    """Many epochs have passed when it raises."""
    train(DataLoader(Few(), batch_size=4))


def sleepy():
    train(DataLoader(Sleepy(), batch_size=1))


def unpicklable():
    multiprocessing.set_start_method("spawn")
    train(DataLoader(Unpicklable(), batch_size=4))


def left_over():
    """Prints after each step which processes and pin threads are there."""
    pretend_pinning()

    def say():
        pins = sum(thread.name.endswith("(_pin_memory_loop)") for thread in threading.enumerate())
        print(json.dumps([len(multiprocessing.active_children()), pins, len(os.listdir("/proc/self/fd"))]))

    train(DataLoader(Rows(), batch_size=4, num_workers=1, pin_memory=True), say)


def random_numbers():
    """Prints at each step what its generators have come to; nothing in the loop draws but dropout."""
    torch.manual_seed(7)
    random.seed(7)

    def say():
        print(
            zlib.crc32(bytes(torch.get_rng_state().tolist())), zlib.crc32(repr(random.getstate()).encode()), flush=True
        )

    train(DataLoader(Rows(), batch_size=4), say)


class Away(torch.Tensor):
    """Passes for a tensor on a device."""

    is_cpu = False


def waiting():
    """Prints at each step what it waited for."""
    steps = itertools.count()
    train(DataLoader(Rows(), batch_size=4), lambda: print(torch.tensor(next(steps)).as_subclass(Away).item()))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
