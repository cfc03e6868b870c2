"""Runs the installed product as a user does: a child process, a script on disk, a folder of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from pathlib import Path

import psutil

from pindiag.model import Report
from pindiag.store import RunDirectory

TRAIN = """
import os, sys, time
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

class Data(Dataset):
    def __len__(self):
        return 512
    def __getitem__(self, index):
        {item}
        return torch.full((64,), float(index)), index % 10

def main():
    {setup}
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Data(), batch_size=8, {arguments})
    step = 0
    for epoch in range({epochs}):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            {body}
        {after}

if __name__ == "__main__":
    main()
"""


def train(
    path: Path,
    *,
    item: str = "time.sleep(0.0005)",
    setup: str = "pass",
    arguments: str = "num_workers=0",
    epochs: int = 100,
    body: str = "pass",
    after: str = "pass",
) -> Path:
    """Write a training script whose holes are filled with one statement or several lines each."""

    def block(code: str, depth: int) -> str:
        return textwrap.indent(textwrap.dedent(code).strip(), " " * depth).strip()

    text = TRAIN.format(
        item=block(item, 8),
        setup=block(setup, 4),
        arguments=arguments,
        epochs=epochs,
        body=block(body, 12),
        after=block(after, 8),
    )
    path.write_text(text)
    return path


LONG_S = 400
"""Nothing hangs for this long: a launch alone takes twenty seconds on a machine that others use too."""


class Product:
    """`pindiag` in a folder, with a mark in the environment by which all its processes can be found.

    Attributes:
        before: words before the command, e.g. one that limits what it may do.
        module: what stands in for `pindiag`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.before: list[str] = []
        self.module = "pindiag"
        self.mark = uuid.uuid4().hex
        self.environment = {**os.environ, "PINDIAG_TEST_MARK": self.mark, "COLUMNS": "200"}

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.before, sys.executable, "-m", self.module, *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *words: str, timeout_s: float = LONG_S) -> subprocess.CompletedProcess[str]:
        return self.end(self.start(*words), timeout_s)

    def end(self, child: subprocess.Popen[str], timeout_s: float = LONG_S) -> subprocess.CompletedProcess[str]:
        """Wait for what was started."""
        try:
            out, err = child.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=30)
            raise AssertionError(f"{child.args} took longer than {timeout_s} s:\n{out}\n{err}") from None
        return subprocess.CompletedProcess(child.args, child.returncode, out, err)

    def report(self, name: str = "out") -> Report:
        return RunDirectory.open(self.folder / name).read_report()

    def processes(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("PINDIAG_TEST_MARK") == self.mark and process.status() != "zombie":
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def wait_until_gone(self, limit_s: float) -> None:
        end = time.monotonic() + limit_s
        while (left := self.processes()) and time.monotonic() < end:
            time.sleep(0.05)
        assert not left, [(process.pid, process.cmdline()) for process in left]

    def wait_for(self, text: str, limit_s: float = LONG_S, name: str = "out") -> None:
        """Wait until a journal of the run holds a text."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            for journal in (self.folder / name / "journal").glob("*.jsonl"):
                if text in journal.read_text(errors="replace").replace(" ", ""):
                    return
            time.sleep(0.02)
        raise AssertionError(f"no journal of {name} holds {text}")
