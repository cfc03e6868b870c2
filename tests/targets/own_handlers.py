"""Installs handlers of its own, changes directory, forks, sets a start method, and prints what came of each."""

import atexit
import faulthandler
import logging
import multiprocessing
import os
import signal
import sys

import torch
from torch.utils.data import DataLoader


def on_interrupt(number, frame):
    print("interrupted", number)


def hook(kind, error, trace):
    print("hooked", kind.__name__, error)


def train():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    for number, _ in enumerate(DataLoader(list(torch.ones(40, 2)), 4, num_workers=1)):
        optimizer.step()
        if number == 5:
            os.kill(os.getpid(), signal.SIGINT)
    print("steps", number + 1)


def main():
    multiprocessing.set_start_method("spawn")
    signal.signal(signal.SIGINT, on_interrupt)
    sys.excepthook = hook
    atexit.register(print, "first registered")
    atexit.register(print, "last registered")
    logging.basicConfig(filename="own.log", level=logging.DEBUG, format="%(levelname)s %(message)s")
    faulthandler.enable()
    os.mkdir("elsewhere")
    os.chdir("elsewhere")
    child = os.fork()
    if child == 0:
        os._exit(7)
    print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    train()
    logging.info("trained")
    with open("../own.log") as log:
        print(log.read(), end="")
    print(os.path.basename(os.getcwd()), multiprocessing.get_start_method(), faulthandler.is_enabled())
    print(signal.getsignal(signal.SIGINT) is on_interrupt, sys.excepthook is hook, logging.getLogger().handlers != [])
    sys.stdout.flush()
    raise ValueError("the end")


if __name__ == "__main__":
    main()
