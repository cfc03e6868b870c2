"""A killed run's directory, made fit to go on."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pindiag.errors import ResumeRefused
from pindiag.journal import Journal
from pindiag.launch import guardian, kept, resume
from pindiag.model import (
    AnyRecord,
    BlockOrder,
    FirstStep,
    LaunchBegan,
    LaunchEnded,
    LaunchOrder,
    RunEnded,
    RunResumed,
    Unmeasured,
)
from pindiag.store import RunDirectory
from tests.integration.guarded import spec

SECOND = 1_000_000_000


def began(launch: int, t_ns: int) -> LaunchBegan:
    block = BlockOrder(block=launch, round=0, trial="baseline")
    return LaunchBegan(
        launch=launch, t_ns=t_ns, pid=7, order=LaunchOrder(purpose="discover", treatment=None, blocks=[block])
    )


def ended(launch: int, t_ns: int) -> LaunchEnded:
    return LaunchEnded(launch=launch, t_ns=t_ns, status="ok", exit="exit status 0", returncode=0, seconds=1.0)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """Killed in its second launch, while it wrote a record."""
    made = RunDirectory.create(tmp_path / "out")
    made.write_spec(spec(tmp_path / "train.py", tmp_path))
    write(made, "parent", [began(1, 1 * SECOND), ended(1, 3 * SECOND), began(2, 4 * SECOND)], b'{"type":"launch_e')
    write(made, "launch-002-9", [FirstStep(launch=2, t_ns=5 * SECOND), note(2, 9 * SECOND)], b'{"type":"blo')
    return made


def write(run: RunDirectory, name: str, records: list[AnyRecord], torn: bytes = b"") -> None:
    with (run.journal / f"{name}.jsonl").open("ab") as journal:
        journal.write(b"".join(msgspec.json.encode(record) + b"\n" for record in records) + torn)


def note(launch: int, t_ns: int) -> Unmeasured:
    return Unmeasured(launch=launch, t_ns=t_ns, key="k", reason="r")


def test_the_launch_that_never_ended_is_closed_where_it_was_last_heard_of(run: RunDirectory) -> None:
    resume.prepare(run, clock_ns=lambda: 1000 * SECOND)
    closed = [record for record in run.records() if isinstance(record, LaunchEnded)]
    assert [record.status for record in closed] == ["ok", "interrupted"]
    assert (closed[1].t_ns, closed[1].seconds) == (9 * SECOND, 5.0)
    journal = Journal(run.records())
    assert journal.launches[1].spent_s == 4.0, "the time that the run lay idle costs nothing"
    assert (journal.resumed_after, journal.ended) == (2, None)
    assert journal.launches[1].lost


def test_what_is_written_next_is_not_lost_in_a_torn_line(run: RunDirectory) -> None:
    resume.prepare(run, clock_ns=lambda: 1000 * SECOND)
    write(run, "parent", [began(3, 1001 * SECOND)])
    assert {record.launch for record in run.records() if isinstance(record, LaunchBegan)} == {1, 2, 3}


def test_an_interrupted_run_goes_on_and_its_next_end_counts(run: RunDirectory) -> None:
    write(run, "parent", [ended(2, 10 * SECOND), RunEnded(launch=0, t_ns=11 * SECOND, status="interrupted")], b"")
    assert Journal(run.records()).ended is not None
    resume.prepare(run, clock_ns=lambda: 12 * SECOND)
    assert Journal(run.records()).ended is None
    write(run, "parent", [RunEnded(launch=0, t_ns=13 * SECOND, status="ok")])
    over = Journal(run.records()).ended
    assert over is not None and over.status == "ok"


def test_after_a_restart_of_the_machine_earlier_records_stay_earlier(run: RunDirectory) -> None:
    resume.prepare(run, clock_ns=lambda: 2 * SECOND)
    write(run, "parent", [began(3, 3 * SECOND), ended(3, 6 * SECOND)])
    records = run.records()
    assert [record.launch for record in records] == [1, 1, 2, 2, 2, 2, 0, 3, 3]
    assert sorted(record.t_ns for record in records) == [record.t_ns for record in records]
    assert [record.t_ns for record in records if record.launch == 3] == [3 * SECOND, 6 * SECOND]
    times = [record.t_ns for record in records if record.launch == 2]
    assert times[-1] - times[0] == 5 * SECOND
    resume.prepare(run, clock_ns=lambda: 1 * SECOND)
    write(run, "parent", [began(4, 2 * SECOND)])
    assert [record.launch for record in run.records()] == [1, 1, 2, 2, 2, 2, 0, 3, 3, 0, 4]


def test_numbers_of_launches_are_not_given_twice(run: RunDirectory) -> None:
    (run.path / "probe").mkdir()
    (run.path / "probe" / "launch-005.json").touch()
    assert resume.last_launch(run, run.records()) == 5
    resume.prepare(run, clock_ns=lambda: 1000 * SECOND)
    assert [record.launches for record in run.records() if isinstance(record, RunResumed)] == [5]


def test_refused_while_a_process_cannot_be_ended(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guardian, "kill", lambda *_: False)
    before = run.records()
    with pytest.raises(ResumeRefused, match="cannot be ended"):
        resume.prepare(run)
    monkeypatch.setattr(guardian, "kill", lambda *_: True)
    monkeypatch.setattr(kept, "is_touched", lambda _: True)
    monkeypatch.setattr(resume, "LEAVE_S", 0.0)
    with pytest.raises(ResumeRefused):
        resume.prepare(run)
    assert run.records() == before
