"""What a launch that hangs was at is kept: real workers that fall asleep, asked by the real probe."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from pindiag.launch.patience import Limits
from pindiag.launch.session import PROBE
from pindiag.model import AnyRecord, Block, LaunchEnded, LaunchOrder

from .launches import Script, in_turn, session, wait_until_gone
from .probe_harness import order, under
from .product import TRAIN, train

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="stacks need real-time signals and anonymous files"),
]

HANG_S = 3.0
LIMITS = Limits(hang_s=HANG_S, hang_factor=0.0)
FALLS_ASLEEP = "if get_worker_info() is not None and os.path.exists('sleep'):\n    time.sleep(1e6)"


def hang(folder: Path, plan: Script, method: str, workers: int) -> tuple[LaunchEnded, list[str]]:
    """How the only launch ended whose workers fall asleep after the first block, and the sections of its stacks."""

    def after(record: AnyRecord) -> None:
        if isinstance(record, Block):
            (folder / "sleep").touch()

    made = session(folder, "", probe=PROBE, limits=LIMITS, wait_s=60, on_record=after)
    train(
        folder / "train.py",
        setup=f"torch.multiprocessing.set_start_method('{method}')",
        arguments=f"num_workers={workers}",
        item=FALLS_ASLEEP,
    )
    assert made.run(plan).status == "ok"
    (ended,) = [record for record in made.records if isinstance(record, LaunchEnded)]
    head, *sections = (folder / "out" / "stacks" / "launch-001.txt").read_text().split("==== ")
    assert head.startswith(f"Launch 1: it made no progress for {HANG_S:g} s.")
    return ended, sections


def check(sections: list[str]) -> None:
    """As faulthandler writes it, or py-spy where the machine has it."""
    (main,) = [section for section in sections if "(main)" in section]
    workers = [section for section in sections if "(worker)" in section]
    assert "__next__" in main and re.search(r"in main$|^ *main \(", main, re.MULTILINE) and "train.py" in main
    assert len(workers) == 2
    asleep = 1 + TRAIN[: TRAIN.index("{item}")].count("\n") + 1
    for worker in workers:
        assert re.search(rf'train.py", line {asleep} in __getitem__|__getitem__ \(.*train.py:{asleep}\)', worker)


def test_workers_of_a_live_treatment(tmp_path: Path, mark: str) -> None:
    ended, sections = hang(tmp_path, in_turn(under(1, "none"), under(2, "two", num_workers=2)), "fork", 0)
    assert ended.status == "failed"
    assert (
        ended.reason
        == f"time-out: it made no progress for {HANG_S:g} s (under two); its stacks are in stacks/launch-001.txt"
    )
    check(sections)
    wait_until_gone(mark, 0)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_were_not_forked(tmp_path: Path, mark: str, method: str) -> None:
    blocks = [order(), order(block=2, seconds=60.0)]
    launch = LaunchOrder(purpose="discover", treatment=None, blocks=blocks)
    ended, sections = hang(tmp_path, Script([launch]), method, 2)
    assert (ended.reason or "").endswith("; its stacks are in stacks/launch-001.txt")
    check(sections)
    wait_until_gone(mark, 0)
