"""Workers' rings and pin-thread counters tell what planted sleeps and spins say, however workers are started."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import pindiag.probe
from pindiag.model import WorkerBatch
from pindiag.store import read_ring

pytestmark = pytest.mark.integration

PREPARE = """
import json, os, sys, time, torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate
sys.path.append({probe!r})
from pindiag_probe import files, pinning, workers

def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

def collate(samples):
    time.sleep(0.02)
    return default_collate(samples)

class Data(Dataset):
    def __init__(self, what):
        self.what = what
    def __len__(self):
        return 24
    def __getitem__(self, index):
        if self.what == "fails" and index == 5:
            raise ValueError("sample 5")
        if self.what == "spins":
            spin(0.01)
        elif index % 4 == 0:
            time.sleep(0.03)
        if self.what == "writes":
            open("worker.log", "a").write(".")
        return torch.ones(2)

class Stream(IterableDataset):
    def __iter__(self):
        yield from torch.ones(10, 2)

def install(fds=()):
    workers.install({rings!r}, 3, fds)

if __name__ == "__main__":
"""


class Child:
    """Runs statements as a script with the timed workers in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rings = folder / "rings"
        self.rings.mkdir()
        probe = folder / "probe"
        shutil.copytree(Path(pindiag.probe.__path__[0]), probe / "pindiag_probe")
        self.prepare = PREPARE.format(probe=str(probe), rings=str(self.rings))

    def start(self, statements: str) -> subprocess.Popen[str]:
        body = "".join(f"    {line}\n" for line in statements.strip().splitlines())
        (self.folder / "train.py").write_text(self.prepare + body)
        return subprocess.Popen(
            [sys.executable, "train.py"],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, statements: str) -> str:
        child = self.start(statements)
        out, err = child.communicate(timeout=60)
        assert child.returncode == 0, err
        return out

    def batches(self) -> list[WorkerBatch]:
        return [batch for path in sorted(self.rings.glob("*.ring")) for batch in read_ring(path)]


@pytest.fixture
def child(tmp_path: Path) -> Child:
    return Child(tmp_path)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_planted_sleeps(child: Child, method: str) -> None:
    child(
        f"""
install()
loader = DataLoader(Data("sleeps"), 4, num_workers=2, collate_fn=collate, multiprocessing_context="{method}")
print(len(list(loader)))
"""
    )
    batches = child.batches()
    assert len(batches) == 6
    assert {batch.worker for batch in batches} == {0, 1}
    assert len({batch.pid for batch in batches}) == 2
    assert {batch.launch for batch in batches} == {3}
    assert {batch.samples for batch in batches} == {4}
    # A busy machine only adds time, so the least disturbed batch shows what was planted.
    assert 30e6 <= min(batch.fetch_ns for batch in batches) < 50e6
    assert 20e6 <= min(batch.collate_ns for batch in batches) < 40e6
    assert min(batch.cpu_ns for batch in batches) < 10e6


def test_planted_spin(child: Child) -> None:
    child("install()\nlist(DataLoader(Data('spins'), 4, num_workers=1))")
    spun = min(batch.cpu_ns for batch in child.batches())
    assert 40e6 <= spun < 44e6


def test_epochs_of_persistent_workers(child: Child) -> None:
    child(
        """
install()
loader = DataLoader(Data("quick"), 5, num_workers=2, persistent_workers=True)
for epoch in range(3):
    assert len(list(loader)) == 5
"""
    )
    batches = child.batches()
    assert len(batches) == 15
    assert len({batch.pid for batch in batches}) == 2
    assert sorted(batch.samples for batch in batches) == [4] * 3 + [5] * 12


def test_streams_and_unbatched(child: Child) -> None:
    child("install()\nlist(DataLoader(Stream(), 4, num_workers=1))\nlist(DataLoader(Stream(), None, num_workers=1))")
    assert [batch.samples for batch in child.batches()] in ([4, 4, 2] + [1] * 10, [1] * 10 + [4, 4, 2])


def test_an_exception_reads_as_without_us(child: Child) -> None:
    statements = (
        "try:\n    list(DataLoader(Data('fails'), 4, num_workers=1))\nexcept ValueError as error:\n    print(error)"
    )
    plain = child(statements)
    assert "sample 5" in plain
    timed = child("install()\n" + statements)
    lines = [[line for line in text.splitlines() if "train.py" not in line] for text in (plain, timed)]
    assert lines[0] == lines[1]


def test_killed_worker_leaves_its_ring(child: Child) -> None:
    process = child.start(
        """
install()
batches = iter(DataLoader(Data("sleeps"), 4, num_workers=1, prefetch_factor=1))
next(batches), next(batches)
print(batches._workers[0].pid, flush=True)
time.sleep(60)
"""
    )
    assert process.stdout is not None
    os.kill(int(process.stdout.readline()), signal.SIGKILL)
    process.kill()
    process.communicate()
    assert len(child.batches()) >= 2


def test_forked_workers_close_the_pipe(child: Child) -> None:
    out = child(
        """
reader, writer = os.pipe()
install((writer,))
batches = iter(DataLoader(Data("sleeps"), 4, num_workers=2))
next(batches)
os.close(writer)
print(os.read(reader, 1))
"""
    )
    assert out == "b''\n"


def test_full_disk_costs_the_ring_only(child: Child) -> None:
    out = child(
        """
def full(fd, offset, size):
    raise OSError(28, "No space left on device")
os.posix_fallocate = full
install()
print(len(list(DataLoader(Data("quick"), 4, num_workers=2))))
"""
    )
    assert out == "6\n"
    assert not list(child.rings.iterdir())


def test_spawned_workers_are_guarded(child: Child) -> None:
    run = child.folder / "run"
    child(
        f"""
files.install({str(run)!r}, 1, 1 << 30)
install()
list(DataLoader(Data("writes"), 4, num_workers=2, multiprocessing_context="spawn"))
"""
    )
    noted = [path for path in (run / "journal").glob("files-001-*.jsonl") if "worker.log" in path.read_text()]
    assert noted


EMULATED_ACCELERATOR = """
torch.accelerator.is_available = lambda: True
torch.accelerator.current_accelerator = lambda *_: torch.device("cuda")
torch.accelerator.current_device_index = lambda: 0
torch.accelerator.set_device_index = lambda *_: None
pinned = []
def pin(self, *_):
    time.sleep(0.005)
    pinned.append(1)
    return self.clone()
torch.Tensor.pin_memory = pin
"""

PIN_TOTALS = """
for batch in DataLoader(Both(), 4, num_workers={workers}, pin_memory=True):
    pass
print(json.dumps([len(pinned), *pinning.pin_totals()]))
"""

BOTH = """
class Both(Data):
    def __init__(self):
        super().__init__("sleeps")
    def __getitem__(self, index):
        return {"x": super().__getitem__(index), "more": [torch.ones(1)]}
"""


@pytest.mark.parametrize("count", [0, 1])
def test_pin_totals(child: Child, count: int) -> None:
    import json

    out = child(EMULATED_ACCELERATOR + BOTH + "install()\n" + PIN_TOTALS.format(workers=count))
    tensors, batches, receive_ns, pin_ns, idle_ns, in_main_thread = json.loads(out)
    assert (tensors, batches) == (12, 6)
    assert 60e6 <= pin_ns < 120e6
    assert in_main_thread is (count == 0)
    if count:
        assert 100e6 < idle_ns
        assert 0 < receive_ns < 60e6
    else:
        assert idle_ns == receive_ns == 0
