"""A live launch: told block by block what to do, and whatever happens to it, what ran is known and nothing stays."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from pindiag.api.conduct import Conductor, Silence
from pindiag.journal import Journal
from pindiag.launch.patience import Limits
from pindiag.model import (
    AnyRecord,
    Block,
    BlockLoad,
    BlockPhase,
    BlocksOrdered,
    FilesSettled,
    FirstStep,
    LaunchBegan,
    LaunchEnded,
    LaunchOrder,
    LoaderChosen,
    Machine,
    MemoryRead,
    NextBlocks,
    RunEnded,
    Sample,
    TargetEnded,
    TreatmentApplied,
    TreatmentRefused,
    Window,
)
from pindiag.store import RunDirectory

from .launches import Script, block, in_turn, live, session, treatment, wait_until_gone

pytestmark = pytest.mark.integration

SHORT = Limits(hang_s=1.0, hang_factor=1.0, leave_s=0.5, export_s=0.2)
HUGE = 10_000
"""Workers whose queue no machine holds, with batches of a GB."""
GB = "1000000000"


def ended(records: list[AnyRecord]) -> LaunchEnded:
    return next(record for record in records if isinstance(record, LaunchEnded))


def blocks(records: list[AnyRecord]) -> list[int]:
    return [record.block for record in records if isinstance(record, Block) and record.status == "counted"]


def test_order_of_records(tmp_path: Path, mark: str) -> None:
    windows = NextBlocks(windows=[block(0, "a", 1), block(0, "b", 2)])
    told = [NextBlocks(blocks=[block(2, "b", 2)]), windows]
    plan = Script([live(block(1, "a", 1))], told)
    made = session(tmp_path, "live", "1")
    made.run(plan)
    one = [TreatmentApplied, MemoryRead, BlocksOrdered]
    others = (record for record in made.records if not isinstance(record, (BlockPhase, BlockLoad)))
    kinds = [type(record) for record in others if not isinstance(record, MemoryRead) or record.phase == "counted"]
    assert kinds == [
        *(Machine, LaunchBegan, LoaderChosen, FirstStep),
        *(Block, *one, Block, *one),
        *(Window, Window, TargetEnded, LaunchEnded, FilesSettled, FilesSettled, RunEnded),
    ]
    assert [record.next for record in made.records if isinstance(record, BlocksOrdered)] == told
    assert (ended(made.records).status, ended(made.records).exit) == ("ok", "stopped after the schedule")
    assert [type(known[-1]) for known in plan.asked] == [MemoryRead, MemoryRead]
    assert [blocks(known) for known in plan.asked] == [[1], [1, 2]]
    assert Journal(made.records).launches[0].unfinished is None
    stored = [r for r in RunDirectory.open(tmp_path / "out").records() if not isinstance(r, Sample)]
    assert stored == sorted(made.records, key=lambda record: record.t_ns)
    wait_until_gone(mark, 0)


def test_all_blocks_of_an_order_run_before_plan_is_asked(tmp_path: Path) -> None:
    plan = Script([live(block(1, "a", 1), block(2, "b", 2))], [NextBlocks(blocks=[block(3, "c", 1), block(4, "a", 1)])])
    made = session(tmp_path, "live", "1")
    made.run(plan)
    assert [blocks(known) for known in plan.asked] == [[1, 2], [1, 2, 3, 4]]
    assert ended(made.records).status == "ok"


THIRD = {
    "live_hangs": ("failed", "killed by pindiag", "time-out: it made no progress for 1 s (under c)", 3),
    "live_is_killed": ("failed", "killed by SIGKILL", "which pindiag did not send (under c)", 3),
    "live_has_a_bus_error": ("failed", "killed by SIGBUS", "when /dev/shm is full", 3),
    "live_raises": ("failed", "exit status 1", "ValueError: planted (under c)", 3),
    "live_ends_early": ("ok", "exit status 0", None, None),
}


@pytest.mark.parametrize("behaviour", THIRD)
def test_third_block(tmp_path: Path, mark: str, behaviour: str) -> None:
    made = session(tmp_path, behaviour, "1", limits=SHORT)
    assert made.run(in_turn(*(block(n, "abcd"[n - 1], n) for n in (1, 2, 3, 4)))).status == "ok"
    status, exit, reason, unfinished = THIRD[behaviour]
    launch = Journal(made.records).launches[0]
    assert (ended(made.records).status, ended(made.records).exit) == (status, exit)
    assert reason is None or reason in (ended(made.records).reason or "")
    assert blocks(made.records) == [1, 2]
    assert (launch.unfinished and launch.unfinished.block) == unfinished
    assert [record.block for record in launch.all(MemoryRead) if record.phase == "counted"] == [1, 2]
    wait_until_gone(mark, 0)


def test_block_that_does_not_fit_gives_way_to_the_next(tmp_path: Path) -> None:
    told = [NextBlocks(blocks=[made]) for made in (block(2, "huge", HUGE), block(3, "a", 2))]
    plan = Script([live(block(1, "a", 2))], told)
    made = session(tmp_path, "live", GB)
    made.run(plan)
    launch = Journal(made.records).launches[0]
    refused = launch.all(TreatmentRefused)
    assert [(record.block, record.trial) for record in refused] == [(2, "huge")]
    assert "10000 workers hold up to" in refused[0].reason
    assert blocks(made.records) == [1, 3]
    assert [order.block for order in launch.block_orders] == [1, 2, 3]
    assert launch.unfinished is None
    assert ended(made.records).status == "ok"


def test_plan_may_stop_after_a_refusal(tmp_path: Path) -> None:
    made = session(tmp_path, "live", GB)
    made.run(Script([live(block(1, "a", 2))], [NextBlocks(blocks=[block(2, "huge", HUGE)])]))
    assert blocks(made.records) == [1]
    assert (ended(made.records).status, ended(made.records).exit) == ("ok", "stopped after the schedule")


def known_loader(*launches: LaunchOrder, told: list[NextBlocks]) -> Script:
    """A first launch finds the loader, so that the memory of what follows can be reckoned."""
    return Script([live(block(1, "a", 2)), *launches], [NextBlocks(), *told])


def test_first_blocks_are_reckoned_too(tmp_path: Path) -> None:
    first = live(block(2, "huge", HUGE), block(3, "a", 2))
    made = session(tmp_path, "live", GB)
    made.run(known_loader(first, told=[]))
    launch = Journal(made.records).launches[1]
    assert [record.block for record in launch.all(TreatmentRefused)] == [2]
    assert blocks(made.records) == [1, 3]
    assert launch.ended is not None and launch.ended.status == "ok"


def test_plan_is_asked_before_the_start_where_no_first_block_fits(tmp_path: Path) -> None:
    plan = known_loader(live(block(2, "huge", HUGE)), told=[NextBlocks(blocks=[block(3, "a", 2)])])
    made = session(tmp_path, "live", GB)
    made.run(plan)
    launch = Journal(made.records).launches[1]
    assert [order.block for order in launch.block_orders] == [2, 3]
    assert blocks(made.records) == [1, 3]
    began = next(record for record in plan.asked[1] if isinstance(record, LaunchBegan) and record.launch == 2)
    assert began.order.blocks[0].block == 2
    assert launch.first(LaunchBegan).pid > 0
    assert len(launch.all(LaunchBegan)) == 1


def test_launch_is_not_started_where_nothing_fits(tmp_path: Path) -> None:
    made = session(tmp_path, "live", GB)
    made.run(known_loader(live(block(2, "huge", HUGE)), told=[]))
    launch = Journal(made.records).launches[1]
    assert launch.ended is not None
    assert (launch.ended.exit, launch.ended.status) == ("not started", "failed")
    assert launch.unfinished is None
    assert len(launch.all(TreatmentRefused)) == len(launch.all(BlocksOrdered)) == len(launch.all(LaunchBegan)) == 1


SCOUTS = {
    "scouts": ("ok", "stopped after the schedule", None),
    "scout_stays": (
        "ok",
        "stopped after the schedule",
        "its process did not end within 0.5 s; its stacks are in stacks/launch-001.txt",
    ),
    "scout_dies": ("failed", "killed by SIGKILL", "the target was killed by SIGKILL, which pindiag did not send"),
}


@pytest.mark.parametrize("behaviour", SCOUTS)
def test_scout_runs_no_block(tmp_path: Path, mark: str, behaviour: str) -> None:
    made = session(tmp_path, behaviour, "1", limits=SHORT)
    made.run(Script([LaunchOrder(purpose="scout", treatment=treatment("other", 2), blocks=[])]))
    launch = ended(made.records)
    assert (launch.status, launch.exit, launch.reason) == SCOUTS[behaviour]
    wait_until_gone(mark, 0)


def test_interrupt_in_the_third_block(tmp_path: Path, mark: str) -> None:
    def interrupt(record: AnyRecord) -> None:
        if isinstance(record, BlockPhase) and record.block == 3:
            os.kill(os.getpid(), signal.SIGINT)

    made = session(tmp_path, "live_hangs", "1", on_record=interrupt)
    assert made.run(in_turn(*(block(n, "abcd"[n - 1], n) for n in (1, 2, 3, 4)))).status == "interrupted"
    launch = Journal(RunDirectory.open(tmp_path / "out").records()).launches[0]
    assert [record.block for record in launch.all(Block)] == [1, 2]
    assert launch.ended is not None and launch.ended.status == "interrupted"
    assert launch.unfinished is not None and launch.unfinished.block == 3
    wait_until_gone(mark, 0)


def test_each_block_has_samples_of_its_own_workers(tmp_path: Path) -> None:
    made = session(tmp_path, "live", "1")
    made.run(in_turn(*(block(n, "a", n) for n in (1, 2, 3))))
    records = RunDirectory.open(tmp_path / "out").records()
    seen = []
    for number in blocks(made.records):
        edges = {r.phase: r.t_ns for r in records if isinstance(r, BlockPhase) and r.block == number}
        read = {r.phase: r.t_ns for r in records if isinstance(r, MemoryRead) and r.block == number}
        end = read["counted"]
        within = [r for r in records if isinstance(r, Sample) and edges["counting"] <= r.t_ns <= end]
        assert len(within) >= 2
        seen.append({frozenset(p.pid for p in sample.processes if p.role == "worker") for sample in within})
    assert all(len(pids) == 1 and len(next(iter(pids))) == 1 for pids in seen)
    assert len(set.union(*seen)) == 3


@pytest.mark.parametrize(("behaviour", "status"), [("live_ends_early", "ok"), ("live_is_killed", "failed")])
def test_plan_goes_on_in_another_launch(tmp_path: Path, mark: str, behaviour: str, status: str) -> None:
    made = session(tmp_path, behaviour, "1")
    assert made.run(Conductor(RunDirectory.open(tmp_path / "out").read_spec(), Silence())).status == "ok"
    journal = Journal(made.records)
    lively = [launch for launch in journal.launches if launch.isolation == "live"]
    assert len(lively) > 2
    assert {launch.ended.status for launch in lively[:2] if launch.ended} == {status}
    planned = [name for name, found in journal.treatments.items() if found.kind == "configuration"]
    wanted = [name for name in planned if name not in journal.skipped]
    assert len(wanted) > 1
    turns = {journal.trial(order.trial) for launch in lively for order in launch.block_orders}
    assert turns >= set(wanted)
    wait_until_gone(mark, 0)
