"""Trains with pindiag's hooks in place and taken out, block by block, or without them at all, and times its own steps.

A step takes a batch, moves its tensors, steps an optimizer and works for a given time; the main thread's CPU time is
that of everything but the work, which would drown it. Without an accelerator the tensors go to torch's "meta" device,
which is then counted as one: the copies cost nothing, the hooks all that they cost.
"""

import argparse
import itertools
import json
import random
import sys
import time

import torch
from torch.optim import optimizer as optimizers
from torch.utils.data import DataLoader, Dataset, _utils
from torch.utils.data.dataloader import _BaseDataLoaderIter

PROBE = "pindiag_probe"
HOOKED = (
    torch.Tensor,
    torch.accelerator,
    torch.cuda,
    torch.cuda.Stream,
    torch.cuda.Event,
    DataLoader,
    _BaseDataLoaderIter,
    _utils.worker,
    _utils.pin_memory,
)
"""Where the probe wraps functions."""

OPTIMIZER_HOOKS = (optimizers._global_optimizer_pre_hooks, optimizers._global_optimizer_post_hooks)
ROWS = 8
"""Samples of a batch."""

SETTLE_STEPS = 4
"""Until queues that filled up during another block are as they are in the middle of one."""

WARM_UP_STEPS = 30
PIECES, PIECE_FLOATS = 16, 4_096
"""Memory that the work passes over: 256 kB. What pushes code out of the caches is large batches."""

LEAST_STEPS = 4
"""Of a block."""


class Hooks:
    """Everything that the probe put into torch, and what stood there before."""

    def __init__(self):
        self.wrapped = [
            (owner, name, value, before)
            for owner in HOOKED
            for name, value in list(vars(owner).items())
            if (before := stood_before(value)) is not None
        ]
        self.registered = [(hooks, dict(hooks)) for hooks in OPTIMIZER_HOOKS]

    def switch(self, on):
        """Put them in place, or take them out."""
        for owner, name, value, before in self.wrapped:
            setattr(owner, name, value if on else before)
        for hooks, registered in self.registered:
            hooks.clear()
            hooks.update(registered if on else {})


def stood_before(value):
    """What a wrapper of the probe's stands for; None for everything else."""
    if type(value).__module__.startswith(PROBE):
        return getattr(value, "original", None)
    of_probe = getattr(value, "__globals__", {}).get("__name__", "").startswith(PROBE)
    return getattr(value, "__wrapped__", None) if of_probe else None


class Rows(Dataset):
    """Batches whose memory is written anew each time."""

    def __init__(self, tensors, floats):
        self.sources = [torch.ones(ROWS, floats) for _ in range(tensors)]

    def __len__(self):
        return 100_000_000

    def __getitems__(self, _):
        """Give a batch; the collate function has nothing left to do."""
        return [source.clone() for source in self.sources]


def as_it_is(batch):
    """Collate nothing."""
    return batch


class Work:
    """Small torch operations, one after another over several tensors, as a main thread launches them for a device."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.pieces = itertools.cycle(torch.ones(PIECES, PIECE_FLOATS))

    def run(self):
        """Go on for so long; returns the CPU time that it took."""
        began = time.thread_time()
        ends = time.perf_counter() + self.seconds
        while time.perf_counter() < ends:
            next(self.pieces).mul_(1.0)
        return time.thread_time() - began


class Loop:
    """A training loop over a loader, one step at a time."""

    def __init__(self, loader, device, work):
        weight = torch.nn.Parameter(torch.zeros(8))
        weight.grad = torch.ones(8)
        self.batches = iter(loader)
        self.optimizer = torch.optim.SGD([weight], lr=1e-6)
        self.device = device
        self.work = work
        self.run(WARM_UP_STEPS)

    def steps_of(self, milliseconds):
        """How many steps last about so long."""
        _, clock_us = self.timed(WARM_UP_STEPS)
        return max(LEAST_STEPS, round(1000 * milliseconds / clock_us))

    def run(self, steps):
        """Make steps; returns the CPU time that their work took."""
        worked = 0.0
        for _ in range(steps):
            batch = next(self.batches)
            _ = [tensor.to(self.device, non_blocking=True) for tensor in batch]
            self.optimizer.step()
            worked += self.work.run()
        return worked

    def timed(self, steps):
        """CPU time of the main thread without the work, and time on the clock, in microseconds a step."""
        self.run(SETTLE_STEPS)
        wait_for(self.device)
        cpu, clock = time.thread_time(), time.perf_counter()
        worked = self.run(steps)
        cpu = time.thread_time() - cpu - worked
        wait_for(self.device)
        return cpu / steps * 1e6, (time.perf_counter() - clock) / steps * 1e6


def wait_for(device):
    """Let the device come to rest."""
    if device == "cuda":
        torch.cuda.synchronize()


def device_of_copies():
    """The accelerator, or what stands for one."""
    if torch.cuda.is_available():
        return "cuda"
    asked = sys.modules.get(f"{PROBE}.asked")
    if asked is not None:
        asked.NO_ACCELERATOR = ("cpu",)
    return "meta"


def loader_of(args):
    """A loader of batches as asked."""
    return DataLoader(
        Rows(args.tensors, args.floats),
        batch_size=ROWS,
        num_workers=args.workers,
        prefetch_factor=1 if args.workers else None,
        pin_memory=torch.cuda.is_available(),
        collate_fn=as_it_is,
    )


def switched(args, device):
    """Pairs of blocks with and without hooks, in random order."""
    hooks, chance = Hooks(), random.Random(0)
    loops = {True: Loop(loader_of(args), device, Work(args.work_ms / 1e3))}
    hooks.switch(False)
    loops[False] = Loop(loader_of(args), device, Work(args.work_ms / 1e3))
    steps = loops[False].steps_of(args.block_ms)
    pairs, ends = [], time.monotonic() + args.seconds
    while time.monotonic() < ends:
        pair = {}
        for on in chance.sample((True, False), 2):
            hooks.switch(on)
            pair[on] = loops[on].timed(steps)
        pairs.append((pair[True], pair[False]))
    hooks.switch(True)
    return pairs


def straight(args, device):
    """One block, as the process is."""
    loop = Loop(loader_of(args), device, Work(args.work_ms / 1e3))
    return loop.timed(loop.steps_of(args.block_ms))


def main():
    """Train, and write down how long the blocks' steps took."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--workers", "--tensors", "--floats"):
        parser.add_argument(name, type=int, required=True)
    for name in ("--work-ms", "--block-ms"):
        parser.add_argument(name, type=float, required=True)
    parser.add_argument("--seconds", type=float, help="how long to switch; left out, one block is timed")
    parser.add_argument("--figures", required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    measured = (straight if args.seconds is None else switched)(args, device_of_copies())
    with open(args.figures, "w") as file:
        json.dump(measured, file)


if __name__ == "__main__":
    main()
