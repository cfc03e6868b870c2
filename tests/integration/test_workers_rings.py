"""Workers' rings and pin-thread counters tell what planted sleeps and spins say, however workers are started."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import pindiag.probe
from pindiag.model import ContextsSeen, WorkerBatch
from pindiag.store import read_journal, read_ring

from .warm_python import warm_python

pytestmark = pytest.mark.integration

TARGETS = Path(__file__).resolve().parents[1] / "targets"

PREPARE = """
import json, os, sys, time, torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate
sys.path += [{probe!r}, {targets!r}]
from pindiag_probe import births, files, pinning, workers

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
        elif self.what != "quick" and index % 4 == 0:
            time.sleep(0.03)
        if self.what == "uses CUDA":
            torch.cuda.is_initialized, torch.cuda.current_device = (lambda: True), (lambda: 1)
        if self.what == "writes":
            open("worker.log", "a").write(".")
        return torch.ones(2)

class Stream(IterableDataset):
    def __iter__(self):
        yield from torch.ones(10, 2)

class Parcel:
    def __init__(self, size):
        self.size = size
    def __reduce__(self):
        time.sleep(0.03)
        return str, ("x" * self.size,)

def parcel(samples):
    return default_collate(samples), Parcel(5_000)

def large(samples):
    return default_collate(samples), Parcel(50_000)

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
        self.prepare = PREPARE.format(probe=str(probe), targets=str(TARGETS), rings=str(self.rings))

    def start(self, statements: str) -> subprocess.Popen[str]:
        """In an interpreter of its own."""
        return subprocess.Popen(
            [sys.executable, self._script(statements)],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, statements: str) -> str:
        out, err = self.folder / "out", self.folder / "err"
        with out.open("w") as said, err.open("w") as warned:
            child = warm_python().start([self._script(statements)], self.folder, {1: said.fileno(), 2: warned.fileno()})
            assert child.wait() == 0, err.read_text()
        return out.read_text()

    def _script(self, statements: str) -> str:
        script = self.folder / "train.py"
        script.write_text(self.prepare + textwrap.indent(statements.strip() + "\n", "    "))
        return str(script)

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
    assert all(batch.idle_ns is not None and batch.idle_ns >= 0 for batch in batches)
    assert 30e6 <= min(batch.fetch_ns for batch in batches) < 50e6
    assert 20e6 <= min(batch.collate_ns for batch in batches) < 40e6
    assert min(batch.cpu_ns for batch in batches) < 10e6


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_planted_hand_off(child: Child, method: str) -> None:
    child(
        f"""
install()
for _ in DataLoader(Data("quick"), 4, num_workers=2, collate_fn=parcel, multiprocessing_context="{method}"):
    time.sleep(0.05)  # a worker that is ended at once does not tell of its last batch
"""
    )
    batches = child.batches()
    assert len(batches) == 6
    told = [batch.hand_off_ns for batch in batches if batch.hand_off_ns is not None]
    assert len(told) == 6
    assert 30e6 <= min(told) < 50e6
    assert all(batch.hand_off_cpu_ns < batch.hand_off_ns for batch in batches)
    assert all(5_000 < batch.sent_bytes < 6_000 for batch in batches)
    assert all(batch.handed_ns >= batch.started_ns + batch.hand_off_ns + batch.blocked_ns for batch in batches)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_worker_that_uses_cuda_says_so_once(child: Child, method: str) -> None:
    (child.folder / "journal").mkdir()
    child(
        f"""
install()
loader = DataLoader(Data("uses CUDA"), 4, num_workers=1, multiprocessing_context="{method}")
print(len(list(loader)))
"""
    )
    (journal,) = (child.folder / "journal").iterdir()
    ((_, seen),) = read_journal(journal)
    assert isinstance(seen, ContextsSeen)
    assert (seen.launch, seen.worker, seen.devices) == (3, 0, [1])
    assert seen.pid in {batch.pid for batch in child.batches()}


def test_planted_idle(child: Child) -> None:
    child(
        """
install()
for _ in DataLoader(Data("quick"), 4, num_workers=1, prefetch_factor=1):
    time.sleep(0.2)
"""
    )
    idle = [batch.idle_ns for batch in child.batches()]
    assert max(idle[2:]) > 100e6  # an index comes with each batch that is taken


def test_a_full_pipe_is_no_hand_off(child: Child) -> None:
    child(
        """
install()
for number, _ in enumerate(DataLoader(Data("quick"), 4, num_workers=1, collate_fn=large, prefetch_factor=5)):
    time.sleep(2 if number == 0 else 0)
"""
    )
    blocked = max(child.batches(), key=lambda batch: batch.blocked_ns)
    assert blocked.blocked_ns > 1e9
    assert blocked.hand_off_ns < 1e9


def test_what_the_kernel_counts(child: Child) -> None:
    child("install()\nlist(DataLoader(Data('spins'), 4, num_workers=1))")
    batches = child.batches()
    assert all(batch.process_cpu_ns > 0.9 * batch.cpu_ns for batch in batches)
    assert sum(batch.minor_faults for batch in batches) > 0
    assert all(batch.major_faults >= 0 for batch in batches)
    told = sys.platform == "linux" and os.access("/proc/self/schedstat", os.R_OK)
    assert all((batch.run_delay_ns is not None) is told for batch in batches)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pickling_of_workers(child: Child, method: str) -> None:
    out = child(
        f"""
install()
data = Data("quick")
data.content = bytes(1_000_000)
batches = iter(DataLoader(data, 4, num_workers=2, multiprocessing_context="{method}"))
print(json.dumps(births.figures(batches, next(batches))))
"""
    )
    told = json.loads(out)
    if method == "fork":
        assert told == {"pickle_ms": None, "pickle_bytes": None, "batch_pinned": None}
    else:
        assert told["pickle_ms"] > 0
        assert 2_000_000 < told["pickle_bytes"] < 2_100_000


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
from pretended_pinning import pretend_pinning
pretend_pinning()
pinned = []
def pin(self, *_):
    began = time.monotonic_ns()
    time.sleep(0.005)
    pinned.append(time.monotonic_ns() - began)
    return self.clone()
torch.Tensor.pin_memory = pin
"""

PIN_TOTALS = """
began = time.monotonic_ns()
for batch in DataLoader(Both(), 4, num_workers={workers}, pin_memory=True):
    pass
wall = time.monotonic_ns() - began
print(json.dumps([len(pinned), sum(pinned), wall, *pinning.pin_totals()]))
"""

BOTH = """
class Both(Data):
    def __init__(self):
        super().__init__("quick")
    def __getitem__(self, index):
        if index == 20:
            time.sleep(1)
        return {"x": torch.ones(2), "more": [torch.ones(1)]}
"""


@pytest.mark.parametrize("count", [0, 1])
def test_pin_totals(child: Child, count: int) -> None:
    out = child(EMULATED_ACCELERATOR + BOTH + "install()\n" + PIN_TOTALS.format(workers=count))
    tensors, slept_ns, wall_ns, batches, receive_ns, pin_ns, idle_ns, in_main_thread = json.loads(out)
    assert (tensors, batches) == (12, 6)
    assert slept_ns <= pin_ns <= wall_ns
    assert in_main_thread is (count == 0)
    if count:
        assert 0.7e9 < idle_ns  # the last batch comes a second after the others
        assert 0 < receive_ns
        assert receive_ns + pin_ns + idle_ns <= wall_ns
    else:
        assert idle_ns == receive_ns == 0
