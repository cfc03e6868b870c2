"""A run that is there serves all benchmarks; one that is missing is made, and its making written down."""

from __future__ import annotations

import json
import subprocess
import tarfile
from argparse import Namespace
from pathlib import Path

import accuracy
import fixes
import fresh_launches
import msgspec
import product
import pytest
import record
import sweep_cost
from recordings import DATA, SAMPLES, Recording, truths
from sweeps import Place, kept_in

from pindiag.journal import Journal
from pindiag.model import RunEnded
from pindiag.store import RunDirectory
from tests.toml import read_toml

SCRIPT = SAMPLES / "slow_reads.py"
COMMAND = ["pindiag", "run", "/elsewhere/slow_reads.py", "--sweep", "--budget", "40s", "--", "--rows", "9"]


class Product:
    """Stands for a product that leaves nothing, and remembers how it was started."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], Path]] = []

    def __call__(self, words, folder):
        self.asked.append((list(words), folder))
        return subprocess.CompletedProcess(words, 4, "", "first\nit broke\n")


@pytest.fixture
def place(tmp_path) -> Place:
    return Place.of(SCRIPT, tmp_path / "runs")


@pytest.fixture
def swept(place, monkeypatch) -> Place:
    """The recording of a sweep where benchmarks look for it; the product cannot be started."""
    Recording(DATA / "cpu" / "slow_reads.tar.xz").unpack(place.folder).path.rename(place.run)
    made = {"wall_s": 75.0, "command": COMMAND, "exit_code": 0, "said": None}
    (place.folder / "swept.json").write_text(json.dumps(made))
    monkeypatch.delattr(product.subprocess, "run")
    monkeypatch.delattr(record.subprocess, "Popen")
    return place


def test_a_script_is_copied_once_and_never_overwritten(place, tmp_path):
    assert place.script.read_text() == SCRIPT.read_text()
    place.script.write_text("changed")
    assert Place.of(SCRIPT, tmp_path / "runs") == place
    assert place.script.read_text() == "changed"


def test_what_is_missing_is_made_and_its_making_written_down(place):
    start = Product()
    made = place.ensure(["--sweep", "--budget", "9s"], ["--rows", "9"], start=start)
    own = [str(place.script), "--sweep", "--budget", "9s"]
    assert start.asked == [
        (["run", *own, "-q", "-o", str(place.run), "--force", "--", "--rows", "9"], place.folder),
    ]
    assert made == place.made
    assert (made.command, made.exit_code, made.said) == (["pindiag", "run", *own, "--", "--rows", "9"], 4, "it broke")
    assert made.wall_s >= 0


def test_a_run_without_a_report_says_why(place, monkeypatch):
    monkeypatch.setattr(Place.ensure, "__kwdefaults__", {"start": Product(), "tells": "-q"})
    with pytest.raises(product.NoReport, match="no report, exit code 4: it broke"):
        place.report(["--sweep"])


def test_a_finished_run_is_taken_as_it_is(swept):
    start = Product()
    assert swept.ensure(["--sweep"], start=start).command == COMMAND
    (swept.folder / "swept.json").unlink()
    assert swept.ensure(["--sweep"], start=start) is None
    assert start.asked == []


@pytest.mark.parametrize("missing", ["report", "end"])
def test_one_that_was_interrupted_is_made_anew(swept, missing):
    if missing == "report":
        (swept.run / "report.json").unlink()
    else:
        run, ended = RunDirectory.open(swept.run), RunEnded(launch=0, t_ns=1 << 62, status="interrupted")
        run.append(run.journal / "parent.jsonl", msgspec.json.encode(ended))
    start = Product()
    swept.ensure(["--sweep"], start=start)
    assert len(start.asked) == 1


def test_accuracy_judges_it(swept, tmp_path):
    case = accuracy.swept("slow_reads", "cpu", truths()["slow_reads"]["cpu"], [], tmp_path / "runs")
    assert (case["cause"], case["right"]) == ("io_bound", True)


def test_fixes_reads_it(swept, tmp_path):
    report = swept.report([])
    case = fixes.measured(SCRIPT, fixes.lengths("9s", "8s", "7s"), tmp_path / "runs")
    assert case["why"] == fixes.why_without_patch(fixes.main_fix(report), report)


def test_sweep_cost_and_versus_advice_take_its_recommendation_and_wall_time(swept):
    found = sweep_cost.sweep(swept, ["--budget", "9s"], [])
    assert found.wall_s == 75.0
    assert found.recommended == swept.report([]).recommendation.trial
    assert found.search_s == 75.0, "it was recorded without verification"


def test_without_its_wall_time_it_costs_nothing_that_is_known(swept):
    (swept.folder / "swept.json").unlink()
    with pytest.raises(SystemExit, match=r"not how long it took: .*swept\.json"):
        sweep_cost.sweep(swept, [], [])


def test_record_packs_it_with_the_command_that_made_it(swept, tmp_path):
    asked = record.parser().parse_args([str(tmp_path / "out"), "slow_reads", "--name", "reads", "--budget", "9s"])
    assert record.record(asked, [], tmp_path / "runs") == 0
    with tarfile.open(tmp_path / "out" / "reads.tar.xz") as packed:
        assert "reads/report.json" in packed.getnames()
    told = read_toml(tmp_path / "out" / record.INDEX)["reads"]
    assert told["command"] == "pindiag run samples/slow_reads.py --sweep --budget 40s -- --rows 9"


def test_record_refuses_a_run_whose_command_nobody_knows(swept, tmp_path):
    (swept.folder / "swept.json").unlink()
    with pytest.raises(SystemExit, match="not its command"):
        record.record(Namespace(**vars(record.parser().parse_args(["out", "slow_reads"]))), [], tmp_path / "runs")


def test_a_folder_that_is_not_named_is_removed(tmp_path):
    with kept_in(tmp_path) as folder:
        assert folder == tmp_path
    with kept_in(None) as folder:
        assert folder.is_dir()
    assert tmp_path.is_dir()
    assert not folder.exists()


class Launched:
    """Stands for a session: takes what a plan orders, and runs none of it."""

    orders: list[object]

    def __init__(self, spec, directory, *, on_record):
        self.records = directory.records()

    def run(self, plan):
        Launched.orders = list(iter(lambda: plan.next_launch(self.records), None))


def test_launches_that_are_missing_are_made_beside_those_that_are_there(swept, monkeypatch):
    monkeypatch.setattr(fresh_launches, "Session", Launched)
    run = RunDirectory.open(swept.run)
    there = [each.order for each in Journal(run.records()).launches if each.order.blocks]
    block = msgspec.structs.replace(there[0].blocks[0], round=99)
    further = msgspec.structs.replace(there[0], blocks=[block])
    journal = fresh_launches.launch_missing(run.read_spec(), [*there, further], swept.run)
    assert Launched.orders == [further]
    assert len(journal.launches) >= len(there) > 0


def test_and_all_where_none_is_there(swept, tmp_path, monkeypatch):
    monkeypatch.setattr(fresh_launches, "Session", Launched)
    order = fresh_launches.as_written(1.0)
    fresh_launches.launch_missing(RunDirectory.open(swept.run).read_spec(), [order], tmp_path / "grid")
    assert Launched.orders == [order]
