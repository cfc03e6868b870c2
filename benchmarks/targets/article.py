"""Measures one case as an article on pinned memory does, and as it should be measured; prints one line of JSON.

ways    a first epoch by the article's clock, which starts once the batch has arrived, and by one around all of it; then
        the same steps with the device synchronised after each copy and each step, and at the two ends alone
memory  whether images fit as float64 first; what a monitor of the main process sees, and what is held in all
threads how fast the main thread computes after the loader's first batch, with or without a look at its threads before
"""

import argparse
import json
import resource
import sys
import time

import psutil
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")


class Images(Dataset):
    """Random images of so many floats, made at the start."""

    def __init__(self, samples, floats):
        self.images = torch.rand(samples, floats)
        self.labels = torch.randint(10, (samples,))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


def synchronize():
    """Wait for the device, where there is one."""
    if GPU:
        torch.cuda.synchronize()


def loader_of(args):
    """The loader of the case."""
    return DataLoader(
        Images(args.samples, args.floats),
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.workers,
        pin_memory=args.pin,
        persistent_workers=args.persistent,
    )


class Step:
    """Copies a batch and trains a linear model on it."""

    def __init__(self, args, wait):
        self.model = nn.Linear(args.floats, 10).to(DEVICE)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
        self.non_blocking = args.non_blocking
        self.wait = wait

    def __call__(self, images, labels):
        """One step; `wait` is called after the copies and at the end."""
        images = images.to(DEVICE, non_blocking=self.non_blocking)
        labels = labels.to(DEVICE, non_blocking=self.non_blocking)
        self.wait()
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.model(images), labels).backward()
        self.optimizer.step()
        self.wait()


def ways(args):
    """Milliseconds a step: by both clocks over a first epoch without warm-up, then an epoch each way, as ordered."""
    loader = loader_of(args)
    shown_s, whole_s = epoch_s(loader, Step(args, synchronize))
    found = {"shown_ms": shown_s, "whole_ms": whole_s}
    waits = {"synchronised_ms": synchronize, "window_ms": lambda: None}
    for name in sorted(waits, reverse=args.window_first):
        _, found[name] = epoch_s(loader, Step(args, waits[name]))
    return {name: 1000 * taken_s / len(loader) for name, taken_s in found.items()}


def epoch_s(loader, step):
    """Seconds of an epoch: by the article's clock, which starts once a batch has arrived, and by one around all."""
    shown = 0.0
    synchronize()
    began = time.perf_counter()
    for images, labels in loader:
        arrived = time.perf_counter()
        step(images, labels)
        shown += time.perf_counter() - arrived
    synchronize()
    return shown, time.perf_counter() - began


def memory(args):
    """Bytes of the main process alone, of all processes and of shared memory, while batches are in flight."""
    fit = doubles_fit(args)
    shared_before = shared_bytes()
    loader = loader_of(args)
    step = Step(args, synchronize)
    batches = iter(loader)
    images, labels = next(batches)
    step(images, labels)
    time.sleep(args.settle_s)
    main = psutil.Process()
    held = [process.memory_full_info().pss for process in [main, *main.children(recursive=True)]]
    batch = images.nbytes + labels.nbytes
    return {
        "doubles_fit": fit,
        "main_rss_bytes": main.memory_info().rss,
        "all_pss_bytes": sum(held),
        "shared_bytes": shared_bytes() - shared_before,
        "batch_bytes": batch,
        "in_flight_bytes": batch * (args.workers * loader.prefetch_factor if args.workers else 1),
        "pinned_bytes": pinned_bytes(),
    }


def doubles_fit(args):
    """Whether the images could be made as float64 first, under a limit in which their float32 has room to spare."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    own = psutil.Process().memory_full_info().data
    resource.setrlimit(resource.RLIMIT_DATA, (own + int(args.room * args.samples * args.floats * 4), before[1]))
    try:
        torch.rand(args.samples, args.floats, dtype=torch.float64)
    except RuntimeError:
        return False
    else:
        return True
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def shared_bytes():
    """What lies in shared memory; batches that nobody has mapped yet are in no process's own figure."""
    return psutil.disk_usage("/dev/shm").used


def pinned_bytes():
    """What the allocator of pinned memory has reserved; None without a GPU, or where torch cannot say."""
    if not GPU or not hasattr(torch.cuda, "host_memory_stats"):
        return None
    stats = torch.cuda.host_memory_stats()
    return stats.get("allocated_bytes.current", stats.get("reserved_bytes.current"))


def threads(args):
    """Milliseconds of a parallel operation in the main thread after the loader's first batch."""
    values = torch.rand(10_000_000)
    loader = loader_of(args)
    if args.look:
        torch.get_num_threads()
    batches = iter(loader)
    next(batches)
    return {"exp_ms": 1000 * timed(values), "threads": torch.get_num_threads()}


def timed(values):
    """Seconds of the fastest of five."""
    taken = []
    for _ in range(5):
        began = time.perf_counter()
        values.exp()
        taken.append(time.perf_counter() - began)
    return min(taken)


def main():
    """Measure what is asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["ways", "memory", "threads"])
    for name, default in (("--samples", 640), ("--floats", 224 * 224 * 3), ("--batch-size", 64), ("--workers", 4)):
        parser.add_argument(name, type=int, default=default)
    parser.add_argument("--room", type=float, default=1.5, help="of the images as float32, for memory")
    parser.add_argument("--settle-s", type=float, default=1.0)
    for name in ("--pin", "--non-blocking", "--persistent", "--window-first", "--look"):
        parser.add_argument(name, action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    json.dump(globals()[args.what](args), sys.stdout)


if __name__ == "__main__":
    main()
