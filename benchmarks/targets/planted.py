"""Trains for ever; every stage takes a known time: sleeps, spins of known CPU time, steps that keep to a clock."""

import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset

BATCH = 4


def spin(seconds):
    """Use this much CPU time of the calling thread."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Rows(Dataset):
    """Rows that take a while to fetch, and memory that the process which fetches them holds on to."""

    def __init__(self, sleep_s, spin_s, row_bytes, hold_bytes):
        self.sleep_s = sleep_s
        self.spin_s = spin_s
        self.hold_bytes = hold_bytes
        self.held = None
        self.row = torch.zeros(row_bytes, dtype=torch.uint8)

    def __len__(self):
        return 100_000

    def __getitems__(self, indices):
        """Give the rows of a batch."""
        if self.held is None:
            self.held = bytearray(b"1") * self.hold_bytes
        time.sleep(self.sleep_s)
        spin(self.spin_s)
        return [self.row for _ in indices]


class Parcel:
    """Travels with a batch through the pipe, and takes a while to pickle."""

    def __init__(self, pickle_s, content):
        self.pickle_s = pickle_s
        self.content = content

    def __reduce__(self):
        time.sleep(self.pickle_s)
        return Parcel, (0.0, self.content)


class Collate:
    """Stacks the rows and adds the parcel."""

    def __init__(self, sleep_s, pickle_s, parcel_bytes):
        self.sleep_s = sleep_s
        self.pickle_s = pickle_s
        self.content = b"1" * parcel_bytes

    def __call__(self, rows):
        """Give rows and parcel."""
        time.sleep(self.sleep_s)
        return torch.stack(rows), Parcel(self.pickle_s, self.content)


class Ticks:
    """Moments at a fixed distance; after one that was missed they begin anew."""

    def __init__(self, tick_s):
        self.tick_s = tick_s
        self.next_s = time.monotonic()

    def wait(self):
        """Sleep until the next one."""
        now = time.monotonic()
        self.next_s = max(self.next_s + self.tick_s, now)
        time.sleep(self.next_s - now)


def main():
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--fetch-ms", "--spin-ms", "--collate-ms", "--hand-off-ms", "--step-ms", "--tick-ms"):
        parser.add_argument(name, type=float, default=0.0)
    for name in ("--workers", "--row-bytes", "--parcel-bytes", "--hold-bytes"):
        parser.add_argument(name, type=int, default=0)
    parser.add_argument("--start-method")
    args = parser.parse_args()

    torch.set_num_threads(1)
    loader = DataLoader(
        Rows(args.fetch_ms / 1000, args.spin_ms / 1000, args.row_bytes, args.hold_bytes),
        batch_size=BATCH,
        num_workers=args.workers,
        multiprocessing_context=args.start_method,
        collate_fn=Collate(args.collate_ms / 1000, args.hand_off_ms / 1000, args.parcel_bytes),
    )
    weight = torch.nn.Parameter(torch.zeros(8))
    optimizer = torch.optim.SGD([weight], lr=0.01)
    ticks = Ticks(args.tick_ms / 1000)
    while True:
        for _ in loader:
            weight.sum().backward()
            optimizer.step()
            time.sleep(args.step_ms / 1000)
            ticks.wait()


if __name__ == "__main__":
    main()
