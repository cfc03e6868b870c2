"""pindiag itself is killed: nothing of the target outlives it, and `--resume` brings the run to its report."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pindiag.model import Block, LaunchBegan, LaunchEnded, Report, RunResumed
from pindiag.store import RunDirectory

from .product import Product, train

pytestmark = pytest.mark.integration

OBSTINATE = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
torch.multiprocessing.set_sharing_strategy("file_system")
def apart(worker):
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
"""
"""Workers in sessions of their own, SIGTERM ignored everywhere, and batches in files of shared memory."""


def shared_memory(pids: set[int]) -> set[str]:
    """Files of torch's in shared memory, made by one of these processes."""
    return {name for name in os.listdir("/dev/shm") if name.startswith(tuple(f"torch_{pid}_" for pid in pids))}


class Resumed:
    """A sweep that was killed in a live launch with workers, and what `--resume` made of it."""

    def __init__(self, folder: Path) -> None:
        self.product = product = Product(folder)
        self.script = train(
            folder / "train.py",
            item="time.sleep(0.001)",
            setup=OBSTINATE,
            arguments="num_workers=2, worker_init_fn=apart",
            body="if step % 50 == 1:\n    torch.save(model.state_dict(), 'last.pt')",
        )
        (folder / "last.pt").write_text("the user's")
        asked = ("run", "train.py", "--sweep", "--budget", "15s", "--rounds", "2", "--grid", "num_workers=0,1,2")
        child = product.start(*asked, "--no-verify", "-o", "out")
        product.wait_for('"round":1,')
        product.wait_for('"phase":"counting"')
        time.sleep(0.5)
        self.pids = {process.pid for process in product.processes()}
        self.refused = product("run", "--resume", "out")
        child.kill()
        self.killed_s = time.monotonic()
        child.communicate()
        product.wait_until_gone(3)
        self.left_in_memory = shared_memory(self.pids)
        self.before = RunDirectory.open(folder / "out").records()
        with (folder / "out" / "journal" / "parent.jsonl").open("ab") as journal:
            journal.write(b'{"type":"launch_en')  # as where it was killed at writing
        self.done = product("run", "--resume", "out")
        self.after = RunDirectory.open(folder / "out").records()

    @property
    def report(self) -> Report:
        return self.product.report()


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resumed]:
    return Resumed(tmp_path_factory.mktemp("resumed"))


def test_nothing_outlives_the_parent(resumed: Resumed) -> None:
    assert len(resumed.pids) >= 5  # it, its guardian, the target and its workers
    assert resumed.left_in_memory == set()


def test_a_run_is_not_resumed_while_it_runs(resumed: Resumed) -> None:
    assert resumed.refused.returncode == 2
    assert "Another pindiag is running in" in resumed.refused.stderr


def test_it_goes_on_to_its_report(resumed: Resumed) -> None:
    assert resumed.done.returncode == 0, resumed.done.stderr
    report = resumed.report
    assert report.target.status == "ok"
    cut = max(record.launch for record in resumed.before)
    figures = {launch.id: launch for launch in report.launches}
    assert (figures[cut].status, figures[cut].exit) == ("interrupted", "killed with pindiag")
    assert min(launch.id for launch in report.launches if launch.id > cut) == cut + 1
    again = next(record for record in resumed.after if isinstance(record, RunResumed))
    assert (again.launches, again.clock_back_ns) == (cut, 0)


def test_what_it_had_measured_counts(resumed: Resumed) -> None:
    earlier = {record.block for record in resumed.before if isinstance(record, Block)}
    assert earlier
    shown = [block.id for block in resumed.report.blocks]
    assert earlier < set(shown)
    assert len(shown) == len(set(shown))
    begun = [record.launch for record in resumed.after if isinstance(record, LaunchBegan)]
    ended = [record.launch for record in resumed.after if isinstance(record, LaunchEnded)]
    assert begun == sorted(set(begun)) and sorted(ended) == begun


def test_the_users_files_are_as_before(resumed: Resumed) -> None:
    assert (resumed.product.folder / "last.pt").read_text() == "the user's"


def test_of_a_complete_run_the_report_is_made_again(resumed: Resumed) -> None:
    resumed.product.folder.joinpath("out", "report.html").unlink()
    done = resumed.product("run", "--resume", "out")
    assert done.returncode == 0, done.stderr
    assert (resumed.product.folder / "out" / "report.html").stat().st_size > 0
    assert RunDirectory.open(resumed.product.folder / "out").records() == resumed.after
