from __future__ import annotations

import os

import pytest
import torch

from pindiag import model
from pindiag.probe import contexts, device
from pindiag.probe.contexts import MainContext, WorkerContext
from pindiag.store import read_journal


@pytest.fixture
def gpus(monkeypatch):
    """Pretends that this process has contexts on some of four GPUs."""
    has: list[int] = []
    monkeypatch.setattr(device, "cuda_in_use", lambda: bool(has))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch._C, "_cuda_hasPrimaryContext", lambda number: number in has, raising=False)
    return has


class Records(list):
    def write(self, kind, **fields):
        self.append((kind, fields))


def test_the_main_process_is_looked_at_once(gpus):
    kept = Records()
    context = MainContext(kept)
    gpus += [0, 2]
    context.look()
    gpus.append(3)
    context.look()
    assert kept == [("contexts_seen", {"pid": os.getpid(), "worker": None, "devices": [0, 2]})]


def test_without_cuda_nothing_is_said(gpus):
    kept = Records()
    MainContext(kept).look()
    assert kept == []


def test_a_worker_says_so_once_it_has_one(gpus, tmp_path):
    context = WorkerContext(str(tmp_path), 7, 3)
    context.look()
    assert list(tmp_path.iterdir()) == []
    gpus.append(1)
    context.look()
    context.look()
    [(_, record)] = read_journal(next(tmp_path.iterdir()))
    assert isinstance(record, model.ContextsSeen)
    assert (record.launch, record.pid, record.worker, record.devices) == (7, os.getpid(), 3, [1])


def test_a_full_disk_fails_no_worker(gpus, tmp_path):
    gpus.append(0)
    WorkerContext(str(tmp_path / "none"), 1, 0).look()


def test_an_older_torch_names_the_current_device(gpus, monkeypatch):
    gpus.append(0)
    monkeypatch.delattr(torch._C, "_cuda_hasPrimaryContext")
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 2)
    assert contexts.devices() == [2]
