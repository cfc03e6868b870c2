"""Ends in the way that the first argument names; the second says whether a loop trains before."""

import atexit
import os
import signal
import sys
import threading

import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, broken=None):
        self.broken = broken

    def __len__(self):
        return 64

    def __getitem__(self, index):
        if index == self.broken:
            raise LookupError(f"row {index} is missing")
        return torch.full((4,), float(index))


def train(steps, **arguments):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, x in enumerate(DataLoader(Rows(arguments.pop("broken", None)), batch_size=4, **arguments)):
        if step == steps:
            return
        model(x).sum().backward()
        optimizer.step()


def plain_error():
    train(3)
    raise ValueError("as it is\nover two lines")


def chained():
    train(3)
    try:
        {}["missing"]
    except KeyError as error:
        raise RuntimeError("the second") from error


def broken_row():
    train(16, broken=30)


def broken_row_in_worker():
    train(16, broken=30, num_workers=1)


def inside_optimizer():
    train(3)
    parameter = torch.nn.Parameter(torch.zeros(2))

    class Bad(torch.optim.SGD):
        def step(self, closure=None):
            raise ArithmeticError("no step")

    Bad([parameter], lr=0.1).step()


def wrong_argument():
    DataLoader(Rows(), batch_size=4, num_workers=-1)


def wrong_copy():
    torch.zeros(2).to("nowhere")


def status_7():
    train(3)
    sys.exit(7)


def status_none():
    sys.exit()


def status_text():
    sys.exit("a last word")


def finished():
    train(3)
    atexit.register(print, "at exit")


def interrupted():
    train(3)
    os.kill(os.getpid(), signal.SIGINT)
    signal.pause()


def own_excepthook():
    def hook(kind, error, trace):
        names = []
        while trace is not None:
            names.append(trace.tb_frame.f_code.co_name)
            trace = trace.tb_next
        print("hooked", kind.__name__, error, names, sys.excepthook is hook)

    sys.excepthook = hook
    raise ValueError("seen by the hook")


def thread_fails():
    def work():
        raise ValueError("in a thread")

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    thread.join()


def about():
    main = sys.modules["__main__"]
    names = ("__name__", "__file__", "__package__", "__spec__", "__cached__", "__doc__", "__annotations__")
    print({name: getattr(main, name, "absent") for name in names})
    print(type(main.__loader__).__name__, main.__dict__ is globals(), main.__builtins__)
    print(sys.argv, sys.path[0], sorted(name for name in globals() if not name.startswith("__")))
    print(os.getcwd(), sys.stdin.isatty(), signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGPIPE))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("the end")
