"""Every figure of a report leads to blocks in the journal: recomputed for live, fresh and recorded runs."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import synthetic_run

from pindiag import api
from pindiag.model import Report
from pindiag.store import RunDirectory

from . import recompute
from .recompute import Recomputed, read_lines

DATA = Path(__file__).parents[1] / "data" / "h200"
RECORDED = sorted(path.name.removesuffix(".tar.xz") for path in DATA.glob("*.tar.xz"))
CHECKS = (
    recompute.assert_throughput,
    recompute.assert_ratios,
    recompute.assert_ceilings,
    recompute.assert_verification,
    recompute.assert_recommended_gain,
    recompute.assert_noise_floor,
    recompute.assert_stages_and_steps,
)
WRITTEN = {"live": synthetic_run.write_live_run, "fresh": synthetic_run.write_run}


@pytest.fixture(scope="module", params=[*WRITTEN, *RECORDED])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param in WRITTEN:
        return WRITTEN[request.param](folder / "run", configurations=6, rounds=4, pairs=4, trace_kernels=3)
    with tarfile.open(DATA / f"{request.param}.tar.xz") as archive:
        archive.extractall(folder)
    return RunDirectory.open(folder / request.param)


@pytest.fixture(scope="module")
def report(run: RunDirectory) -> Report:
    return api.assemble(run)[0]


@pytest.fixture(scope="module")
def raw(run: RunDirectory, report: Report) -> Recomputed:
    assert report.baseline is not None
    return Recomputed(read_lines(run.path), report.baseline)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("assert_"))
def test_figures(check: Callable[[Report, Recomputed], None], report: Report, raw: Recomputed) -> None:
    check(report, raw)


def test_every_block_is_where_it_is_said_to_be(report: Report, run: RunDirectory) -> None:
    for block in report.blocks:
        name, _, line = block.journal.rpartition(":")
        found = json.loads((run.journal / name).read_text().splitlines()[int(line) - 1])
        assert (found["type"], found["block"]) == ("block", block.id)
        assert (found["samples"], found["seconds"]) == (block.samples, block.seconds)


def test_launches_are_those_of_the_journal(report: Report, raw: Recomputed) -> None:
    shown = {launch.id: (launch.isolation, launch.purpose) for launch in report.launches}
    assert shown == {number: (raw.isolation(number), order["purpose"]) for number, order in raw.orders.items()}
