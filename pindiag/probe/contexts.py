"""On which GPUs a process of the target has a CUDA context; asking makes none."""

from __future__ import annotations

import json
import os
import time

import torch

from . import device
from .recorder import Recorder


def devices() -> list[int]:
    """Numbers of the GPUs on which this process has one, as far as torch can tell."""
    if not device.cuda_in_use():
        return []
    has_context = getattr(torch._C, "_cuda_hasPrimaryContext", None)
    if has_context is None:
        return [torch.cuda.current_device()]
    return [number for number in range(torch.cuda.device_count()) if has_context(number)]


class MainContext:
    """Says once which contexts the main process has, after a block: whatever uses a GPU has begun to by then."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._told = False

    def look(self) -> None:
        """A block is done."""
        found = [] if self._told else devices()
        self._told = True
        if found:
            self._recorder.write("contexts_seen", pid=os.getpid(), worker=None, devices=found)


class WorkerContext:
    """Writes a journal of its own once the worker has a context."""

    def __init__(self, journal: str, launch: int, worker: int) -> None:
        self._journal = os.path.join(journal, f"contexts-{launch:03d}-{os.getpid()}.jsonl")
        self._launch = launch
        self._worker = worker
        self._told = False

    def look(self) -> None:
        """After a batch was made; a full disk must not fail the worker."""
        if self._told or not device.cuda_in_use():
            return
        self._told = True
        record = {
            "type": "contexts_seen",
            "launch": self._launch,
            "t_ns": time.monotonic_ns(),
            "pid": os.getpid(),
            "worker": self._worker,
            "devices": devices(),
        }
        try:
            with open(self._journal, "a", encoding="utf-8") as journal:
                journal.write(json.dumps(record) + "\n")
        except OSError:
            return
