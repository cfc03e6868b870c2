"""Every figure of a report leads to blocks in the journal: recomputed for live, fresh and recorded runs."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import synthetic_run
from recordings import Recording, recordings

from pindiag import api
from pindiag.model import Report
from pindiag.store import RunDirectory
from tests.recorded_runs import report_of, run_of

from . import recompute
from .recompute import Recomputed, read_lines

RECORDED = [each for each in recordings() if each.archive.parent.name == "h200"]
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


@pytest.fixture(scope="module", params=[*WRITTEN, *RECORDED], ids=[*WRITTEN, *(each.name for each in RECORDED)])
def source(request: pytest.FixtureRequest) -> str | Recording:
    """A synthetic run, by its kind, or a recording."""
    return request.param


@pytest.fixture(scope="module")
def run(source: str | Recording, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    if isinstance(source, Recording):
        return run_of(source)
    write = WRITTEN[source]
    return write(tmp_path_factory.mktemp(source) / "run", configurations=6, rounds=4, pairs=4, trace_kernels=3)


@pytest.fixture(scope="module")
def report(source: str | Recording, run: RunDirectory) -> Report:
    return report_of(source) if isinstance(source, Recording) else api.assemble(run)[0]


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
