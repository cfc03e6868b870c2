"""Spends known times in known places and prints what its own clock says of each step."""

import json
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

FETCH_S, STEP_S, OPTIMIZER_S, SPIN_S = 0.010, 0.020, 0.005, 0.004


class Rows(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        time.sleep(FETCH_S / 4)
        return torch.zeros(64, 64)


class Slow(torch.optim.SGD):
    @torch.optim.Optimizer.profile_hook_step
    def step(self, closure=None):
        time.sleep(OPTIMIZER_S)


def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def accelerator_that_is_none():
    """The meta device stands in for an accelerator: copies to it are counted, and nothing is computed."""
    from pindiag_probe import asked

    asked.NO_ACCELERATOR = ("cpu",)


def main():
    if "transfers" in sys.argv:
        accelerator_that_is_none()
    optimizer = Slow([torch.nn.Parameter(torch.zeros(2))], lr=0.1)
    loader = DataLoader(Rows(), batch_size=4)
    batches = iter(loader)
    began = time.perf_counter()
    while True:
        asked = time.perf_counter()
        x = next(batches)
        got = time.perf_counter()
        if "transfers" in sys.argv:
            x.to("meta")
            x[:2].to(device="meta", non_blocking=True)
            x.double().to("cpu", torch.float32)
        time.sleep(STEP_S)
        spin(SPIN_S)
        stepped = time.perf_counter()
        optimizer.step()
        done = time.perf_counter()
        ms = {"wait": got - asked, "optimizer": done - stepped, "step": done - began}
        print(json.dumps({name: seconds * 1e3 for name, seconds in ms.items()}), flush=True)
        began = done


main()
