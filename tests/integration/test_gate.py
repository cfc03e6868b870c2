"""The safety gate in real launches: what the probe records, and what is made of it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pindiag.gate import safety
from pindiag.journal import Journal
from pindiag.model import Configuration, GatePass, HandlesOpen, LaunchBegan, LaunchOrder, Safety, Treatment

from .probe_harness import FEW, TARGETS, Result, launch, order
from .product import Product

pytestmark = pytest.mark.integration


def configuration(changed: dict[str, bool | int | None]) -> Configuration:
    blank = Configuration(
        num_workers=0,
        pin_memory=False,
        non_blocking=None,
        prefetch_factor=None,
        persistent_workers=False,
        batch_size=8,
    )
    return msgspec.structs.replace(blank, **changed)


def run(folder: Path, name: str, *changes: dict[str, bool | int | None]) -> tuple[Result, Journal, list[Treatment]]:
    """A launch that is told to compare batches after its block; what it was told stands in the journal."""
    made = [
        Treatment(id=f"changed-{number}", kind="configuration", configuration=configuration(changed), changes=changed)
        for number, changed in enumerate(changes)
    ]
    answer = {"then": "gates", "gates": msgspec.to_builtins(made)}
    script = TARGETS / "gated.py"
    result = launch(folder, script, name, isolation="live", blocks=[order(**FEW)], answers=[answer])
    assert result.returncode == 0, result.output
    assert "Traceback" not in result.output
    told = LaunchOrder(purpose="round", isolation="live", treatment=None, blocks=[], planned=made)
    return result, Journal([LaunchBegan(launch=1, t_ns=0, pid=1, order=told), *result.records]), made


def judged(folder: Path, name: str, *changes: dict[str, bool | int | None]) -> list[Safety]:
    _, journal, made = run(folder, name, *changes)
    return [safety(journal, each) for each in made]


def test_a_dataset_that_depends_on_nothing_but_its_indices_passes(tmp_path):
    result, journal, made = run(tmp_path, "plain", {"num_workers": 4})
    said = safety(journal, made[0])
    assert (said.status, said.reason.startswith("8 batches are bit for bit")) == ("passed", True)
    seen = result.one(HandlesOpen)
    assert (seen.handles, seen.objects, seen.collate_place) == ([], [], None)
    passes = result.all(GatePass)
    assert [(each.trial, each.workers, each.backwards, len(each.batches)) for each in passes] == [
        ("changed-0", 4, False, 8),
        ("baseline", 0, False, 8),
    ]
    assert all(len({batch.content for batch in each.batches}) == 8 for each in passes)
    assert [record["type"] for record in result.piped].count("gate_pass") == 2


def test_random_augmentation_passes_as_incomparable(tmp_path):
    [said] = judged(tmp_path, "augmenting", {"num_workers": 2})
    assert (said.status, "random augmentation" in said.reason) == ("passed", True)


def test_workers_that_read_one_open_file_fail(tmp_path):
    several, one = judged(tmp_path, "open_file", {"num_workers": 4}, {"num_workers": 1})
    assert (several.status, "workers would share" in several.reason, "rows.bin" in several.reason) == (
        "failed",
        True,
        True,
    )
    assert one.status == "passed"


def test_files_that_are_open_and_not_read_pass(tmp_path):
    result, journal, made = run(tmp_path, "unread", {"num_workers": 2})
    kinds = {handle.place: handle.kind for handle in result.one(HandlesOpen).handles}
    assert kinds == {"dataset.archive": "zipfile.ZipFile", "dataset.source": "io.TextIOWrapper"}
    assert safety(journal, made[0]).status == "passed"


def test_an_iterable_dataset_that_each_worker_gives_whole_fails(tmp_path):
    [said] = judged(tmp_path, "unsplit", {"num_workers": 2})
    assert (said.status, "All 2 workers give the same batches" in said.reason) == ("failed", True)


def test_one_buffer_for_all_batches_fails_in_workers_and_under_non_blocking(tmp_path):
    workers, asynchronous, pinned = judged(
        tmp_path, "one_buffer", {"num_workers": 4}, {"non_blocking": True}, {"pin_memory": True}
    )
    assert (workers.status, "batches" in workers.reason) == ("failed", True), workers
    assert (asynchronous.status, "written again without waiting" in asynchronous.reason) == ("failed", True)
    assert asynchronous.reason.count("gated.py:") == 1
    assert pinned.status == "passed"


@pytest.mark.parametrize(
    ("name", "changes", "status"),
    [
        ("staging", {"non_blocking": True}, "failed"),
        ("waiting", {"non_blocking": True}, "passed"),
        ("mended", {"non_blocking": True, "pin_memory": True}, "failed"),
    ],
)
def test_buffers_of_the_script(tmp_path, name, changes, status):
    [said] = judged(tmp_path, name, changes)
    assert said.status == status, said


def test_a_faster_configuration_that_spoils_batches_is_shown_and_not_recommended(tmp_path):
    product = Product(tmp_path)
    asked = ["--sweep", "--grid", "num_workers=0,4", "--budget", "25", "--rounds", "3", "-o", "out"]
    done = product("run", *asked, str(TARGETS / "gated.py"), "open_file")
    assert done.returncode == 0, done.stderr
    report = product.report()
    trial = next(trial for trial in report.trials if trial.id == "nw4-pin0")
    assert trial.versus_baseline.ratio > 1
    assert (trial.safety.status, "not recommended" in trial.reason) == ("failed", True)
    assert report.recommendation.trial == report.baseline == "nw0-pin0"
    assert report.verification is None, "nothing is left to verify"
    assert "is not recommended." in report.verdict.headline
    assert all(fix.patch is None for one in report.findings for fix in one.fixes if fix.safety.status == "failed")
    assert "is not recommended." in done.stderr + done.stdout
