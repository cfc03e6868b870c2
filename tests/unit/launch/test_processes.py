import os
import resource
from pathlib import Path

import psutil
import pytest
from msgspec.structs import asdict

from pindiag.launch.processes import Pss, Tree
from tests.unit.spoiled import WAYS, spoil

TICK = 100


def stat(pid: int, name: str, *, state: str = "S", cpu: tuple[int, int] = (0, 0), pages: int = 0) -> str:
    fields = ["0"] * 50
    fields[0], fields[1] = state, "1"
    fields[7], fields[9] = "11", "12"
    fields[11], fields[12] = map(str, cpu)
    fields[19], fields[21] = str(1000 + pid), str(pages)
    fields[39] = "5"
    return f"{pid} ({name}) {' '.join(fields)}\n"


class Proc:
    """A process table on disk."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def add(
        self,
        pid: int,
        name: str,
        *,
        children: str = "",
        threads: dict[int, tuple[str, str]] | None = None,
        pss_kb: int | None = None,
        **fields: object,
    ) -> None:
        folder = self.root / str(pid)
        for task, (comm, schedstat) in {pid: (name, "0 0 1"), **(threads or {})}.items():
            (folder / "task" / str(task)).mkdir(parents=True)
            (folder / "task" / str(task) / "comm").write_text(comm + "\n")
            (folder / "task" / str(task) / "schedstat").write_text(schedstat + "\n")
            (folder / "task" / str(task) / "children").write_text(children if task == pid else "")
        (folder / "stat").write_text(stat(pid, name, **fields))
        (folder / "status").write_text("Name: x\nvoluntary_ctxt_switches:\t8\nnonvoluntary_ctxt_switches:\t9\n")
        (folder / "io").write_text("rchar: 9000\nread_bytes: 4096\nwrite_bytes: 1\n")
        if pss_kb is not None:
            (folder / "smaps_rollup").write_text(
                f"00-ff ---p 0 00:00 0 [rollup]\nRss: 9 kB\nPss: {pss_kb} kB\nPss_Shmem: 2 kB\n"
            )


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proc:
    monkeypatch.setattr("os.sysconf", {"SC_CLK_TCK": TICK, "SC_PAGE_SIZE": 4096}.__getitem__)
    return Proc(tmp_path)


def test_tree(proc: Proc) -> None:
    threads = {11: ("pt_data_pin", "700000000 1500000000 3"), 12: ("python", "1 500000000 3")}
    proc.add(10, "py) x", children="20 21 ", threads=threads, cpu=(150, 50), pages=3)
    proc.add(20, "pt_data_worker", state="R")
    proc.add(21, "python", children="22")
    proc.add(22, "sh")
    tree = Tree(10, proc.root)
    tree.refresh()
    processes = {process.pid: process for process in tree.read()}
    assert {pid: process.role for pid, process in processes.items()} == {
        10: "main",
        20: "worker",
        21: "other",
        22: "other",
    }
    main = processes[10]
    assert (main.cpu_s, main.rss_bytes, main.threads) == (2.0, 3 * 4096, 3)
    assert (main.voluntary_switches, main.involuntary_switches) == (8, 9)
    assert (main.minor_faults, main.major_faults, main.read_bytes) == (11, 12, 4096)
    assert main.asked_bytes == 9000
    assert tree.makers() == [20]
    assert (main.run_delay_s, main.pin_thread_cpu_s, main.block_io_delay_s) == (2.0, 0.7, 0.05)
    assert (processes[20].state, processes[20].pin_thread_cpu_s) == ("R", None)
    assert tree.started == {10: 1010, 20: 1020, 21: 1021, 22: 1022}


LIMITS = "Limit            Soft Limit  Hard Limit  Units\nMax open files   1024        524288      files\n"


def test_open_files_of_the_main_process(proc: Proc) -> None:
    proc.add(10, "python")
    assert Tree(10, proc.root).open_files() == (None, None)
    for descriptor in range(5):
        (proc.root / "10/fd" / str(descriptor)).mkdir(parents=True)
    assert Tree(10, proc.root).open_files()[1] is None
    (proc.root / "10/limits").write_text(LIMITS)
    assert Tree(10, proc.root).open_files()[1] == 1024
    (proc.root / "10/limits").write_text(LIMITS.replace("1024", "unlimited"))
    assert Tree(10, proc.root).open_files()[1] is None


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors of Linux")
def test_a_file_that_is_opened_is_one_more(tmp_path: Path) -> None:
    tree = Tree(os.getpid())
    before, limit = tree.open_files()
    with (tmp_path / "one").open("w"), (tmp_path / "two").open("w"):
        more, _ = tree.open_files()
    assert before is not None and more is not None
    assert more - before == 2
    assert limit == resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def test_process_that_vanished_is_left_out(proc: Proc) -> None:
    proc.add(10, "python", children="20 21")
    proc.add(21, "python", state="Z")
    tree = Tree(10, proc.root)
    tree.refresh()
    assert [process.pid for process in tree.read()] == [10]
    assert tree.makers() == [10]


def test_what_the_kernel_hides_is_none(proc: Proc) -> None:
    proc.add(10, "python")
    for name in ("status", "io", "task/10/schedstat"):
        (proc.root / "10" / name).unlink()
    (main,) = Tree(10, proc.root).read()
    assert main.asked_bytes is None
    assert main.voluntary_switches is main.involuntary_switches is main.read_bytes is main.run_delay_s is None


def test_worker_that_gets_its_name_late(proc: Proc) -> None:
    proc.add(10, "python", children="20")
    proc.add(20, "python")
    tree = Tree(10, proc.root)
    tree.refresh()
    for _ in range(5):
        assert [process.role for process in tree.read()] == ["main", "other"]
    (proc.root / "20/task/20/comm").write_text("pt_data_worker\n")
    assert [process.role for process in tree.read()] == ["main", "worker"]


def test_pss(proc: Proc) -> None:
    proc.add(10, "python", children="20 21", pss_kb=100)
    proc.add(20, "pt_data_worker", pss_kb=30)
    assert Tree(10, proc.root).pss() == Pss(130 * 1024, 30 * 1024, 4 * 1024)


def test_pss_that_is_not_there(proc: Proc) -> None:
    proc.add(10, "python")
    assert Tree(10, proc.root).pss() == "the kernel does not tell proportional set sizes"


OF_STAT = {"cpu_s", "rss_bytes", "minor_faults", "major_faults", "block_io_delay_s", "reaped_cpu_s"}
OF_FILES = {
    "stat": OF_STAT,
    "status": {"voluntary_switches", "involuntary_switches"},
    "io": {"read_bytes", "asked_bytes"},
    "task/10/schedstat": {"run_delay_s"},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [*OF_FILES, "task/10/comm", "task/10/children"])
def test_a_spoiled_file_costs_its_own_fields(
    proc: Proc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, way: str
) -> None:
    proc.add(10, "python", children="20", cpu=(150, 50), pages=3)
    proc.add(20, "pt_data_worker")
    (whole,) = Tree(10, proc.root).read()
    spoil(monkeypatch, tmp_path, proc.root / "10" / name, way)
    tree = Tree(10, proc.root)
    tree.refresh()
    main = tree.read()[0]
    lost = {field for field, value in asdict(whole).items() if getattr(main, field) != value} - {"state"}
    assert lost == OF_FILES.get(name, set())
    assert all(getattr(main, field) is None for field in lost)
    assert [process.pid for process in tree.read()] == ([10] if name == "task/10/children" else [10, 20])


def test_a_process_whose_threads_may_not_be_listed(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    proc.add(10, "python", pages=3)

    def refuse(_: str) -> list[str]:
        raise PermissionError

    monkeypatch.setattr("os.listdir", refuse)
    tree = Tree(10, proc.root)
    tree.refresh()
    (main,) = tree.read()
    assert (main.threads, main.run_delay_s, main.rss_bytes) == (None, None, 3 * 4096)


@pytest.mark.parametrize("way", WAYS)
def test_a_size_that_cannot_be_read_is_missing_from_no_sum(
    proc: Proc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    proc.add(10, "python", children="20", pss_kb=100)
    proc.add(20, "pt_data_worker", pss_kb=30)
    spoil(monkeypatch, tmp_path, proc.root / "20/smaps_rollup", way)
    reason = Tree(10, proc.root).pss()
    assert isinstance(reason, str)
    assert reason.startswith("/proc/PID/smaps_rollup cannot be read: ")


def test_a_kernel_that_does_not_tell_shared_memory_apart(proc: Proc) -> None:
    proc.add(10, "python", pss_kb=100)
    rollup = proc.root / "10/smaps_rollup"
    rollup.write_text(rollup.read_text().replace("Pss_Shmem", "Other"))
    assert Tree(10, proc.root).pss() == Pss(100 * 1024, 0, None)


REFUSED = {
    "cpu_times": {"cpu_s"},
    "num_ctx_switches": {"voluntary_switches", "involuntary_switches"},
    "memory_info": {"rss_bytes"},
    "num_threads": {"threads"},
    "status": {"state"},
}


@pytest.mark.parametrize("error", [psutil.AccessDenied(), OSError("refused"), NotImplementedError("not here")])
@pytest.mark.parametrize("question", REFUSED)
def test_what_psutil_refuses_costs_its_own_fields(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str, error: Exception
) -> None:
    def refuse(_: psutil.Process) -> None:
        raise error

    refuse.cache_activate = refuse.cache_deactivate = lambda _: None  # as psutil's own readings have
    monkeypatch.setattr(psutil.Process, question, refuse)
    (main,) = Tree(os.getpid(), tmp_path).read()
    asked = set().union(*REFUSED.values())
    assert main.role == "main"
    assert {field for field in asked if getattr(main, field) is None} == REFUSED[question]


def test_a_process_that_psutil_does_not_find_is_left_out(tmp_path: Path) -> None:
    assert Tree(4_194_303, tmp_path).read() == []


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="affinity of Linux")
def test_the_cpus_that_a_process_is_bound_to() -> None:
    (own,) = [process for process in Tree(os.getpid()).read() if process.pid == os.getpid()]
    assert own.allowed_cpus is not None
    mask = int(own.allowed_cpus, 16)
    assert {cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1} == os.sched_getaffinity(0)
