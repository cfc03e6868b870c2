"""A script that sets up its process as it likes: signals, hooks, logging, another directory, forks of its own."""

import atexit
import faulthandler
import logging
import multiprocessing
import os
import signal
import sys
import tempfile
import threading

import torch
from result import tell
from torch.utils.data import DataLoader, TensorDataset

log = logging.getLogger("training")


def on_interrupt(number, frame):
    log.warning("interrupted: %s at %s", signal.Signals(number).name, frame.f_code.co_name)


def on_exception(kind, error, trace):
    names = []
    while trace is not None:
        names.append(os.path.basename(trace.tb_frame.f_code.co_filename))
        trace = trace.tb_next
    print("hook", kind.__name__, error, names, flush=True)


def fork():
    """A child of its own, which runs a loader of its own and says what it saw."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        total = sum(int(rows.sum()) for (rows,) in DataLoader(TensorDataset(torch.arange(20)), batch_size=4))
        os._exit(total % 256)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_process(queue):
    queue.put(os.getpid() != os.getppid())


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(levelname)s %(name)s %(message)s")
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR2, file=sys.stdout, all_threads=False)
    signal.signal(signal.SIGINT, on_interrupt)
    sys.excepthook = on_exception
    threading.excepthook = lambda args: print("thread hook", args.exc_type.__name__, flush=True)
    atexit.register(print, "atexit", flush=True)
    multiprocessing.set_start_method("fork")
    folder = tempfile.mkdtemp()
    os.chdir(folder)

    torch.manual_seed(0)
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = TensorDataset(torch.randn(320, 16), torch.randint(0, 4, (320,)))
    loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=1)  # trains
    for epoch in range(3):
        for step, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            if step == 20:
                log.info("epoch %d, child %d", epoch, fork())
                os.kill(os.getpid(), signal.SIGINT)
    queue = multiprocessing.SimpleQueue()
    process = multiprocessing.Process(target=in_process, args=(queue,))
    process.start()
    log.info("process %s", queue.get())
    process.join()
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    assert os.getcwd() == os.path.realpath(folder)
    os.chdir("/")
    os.rmdir(folder)
    tell(model)
    raise LookupError("at its end")


if __name__ == "__main__":
    main()
