import os
from pathlib import Path
from typing import Literal

import pytest

from pindiag.launch.processes import Tree
from pindiag.launch.sampler import REFRESH_EVERY, MachineReader, Sampler
from pindiag.model import Process, Sample, StorageSeen
from pindiag.store import read_journal


def make(tmp_path: Path, journal: Path, main: int | None = None) -> Sampler:
    ticks = iter(range(10, 1000, 10))
    tree = Tree(os.getpid() if main is None else main)
    return Sampler(3, tree, journal, machine=MachineReader(), period_s=1000, clock_ns=lambda: next(ticks))


def read(journal: Path) -> list[Sample]:
    return [record for _, record in read_journal(journal) if isinstance(record, Sample)]


def test_samples_are_in_the_journal_at_once(tmp_path: Path) -> None:
    journal = tmp_path / "sampler-003.jsonl"
    sampler = make(tmp_path, journal)
    sampler.sample()
    sampler.sample(refresh=False)
    first, second = read(journal)
    assert (first.launch, first.t_ns, second.t_ns) == (3, 10, 20)
    assert first.processes[0].pid == os.getpid()
    assert first.sampler_cpu_s == 0 < second.sampler_cpu_s
    assert first.open_files is None or first.open_files > 2
    assert (first.open_files is None) == (Tree(os.getpid()).open_files()[0] is None)
    sampler.close()


def test_the_thread_begins_with_a_sample_and_ends_when_closed(tmp_path: Path) -> None:
    journal = tmp_path / "sampler-003.jsonl"
    sampler = make(tmp_path, journal)
    sampler.start()
    while not read(journal):
        pass
    sampler.close()
    assert len(read(journal)) == 1
    sampler.sample()
    assert len(read(journal)) == 1


def test_where_the_files_lie_is_noted_once_and_not_while_a_block_counts(tmp_path: Path) -> None:
    journal, data = tmp_path / "run/journal/sampler-003.jsonl", tmp_path / "data.bin"
    journal.parent.mkdir(parents=True)
    data.write_bytes(b"1")
    sampler = make(tmp_path, journal)
    with data.open("rb"):
        sampler.phase("counting")
        counting = read_journal(journal)
        assert not any(isinstance(record, StorageSeen) for _, record in counting)
        sampler.phase("counted")
        sampler.sample()
    seen = [record for _, record in read_journal(journal) if isinstance(record, StorageSeen)]
    assert (3, "open") in {(record.launch, record.how) for record in seen}
    assert len({(record.filesystem, record.device, record.how) for record in seen}) == len(seen)
    sampler.close()


class Watched(Tree):
    """Counts how often it was looked for new processes, and how often it was read."""

    refreshes = reads = 0

    def refresh(self) -> None:
        self.refreshes += 1
        super().refresh()

    def read(self) -> list[Process]:
        self.reads += 1
        return super().read()


@pytest.mark.parametrize(("phase", "always"), [("settling", True), ("counting", False), ("counted", True)])
def test_new_processes_are_looked_for_at_every_sample_while_no_block_counts(
    tmp_path: Path, phase: Literal["settling", "counting", "counted"], always: bool
) -> None:
    tree = Watched(os.getpid())
    sampler = Sampler(3, tree, tmp_path / "s.jsonl", machine=MachineReader(), period_s=0.001)
    sampler.phase(phase)
    assert tree.reads == tree.refreshes == (0 if phase == "settling" else 1)
    sampler.start()
    while tree.reads < 4 * REFRESH_EVERY:
        pass
    sampler.close()
    assert (tree.refreshes == tree.reads) == always
    assert tree.refreshes >= tree.reads // REFRESH_EVERY


def test_full_disk_is_noted(tmp_path: Path) -> None:
    sampler = make(tmp_path, Path("/dev/full"))
    sampler.sample()
    sampler.sample()
    assert isinstance(sampler.error, OSError)
    sampler.close()


def test_memory_of_a_process_that_is_gone(tmp_path: Path) -> None:
    sampler = make(tmp_path, tmp_path / "s.jsonl", main=4_194_303)
    memory = sampler.memory(2, "nw0")
    assert (memory.block, memory.trial, memory.pss_bytes) == (2, "nw0", None)
    assert memory.reason == "the kernel does not tell proportional set sizes"
    sampler.close()
