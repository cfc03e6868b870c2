"""Every figure of a report leads to blocks in the journal: recomputed for live, fresh and recorded runs."""

from __future__ import annotations

import json
import statistics
import tarfile
from pathlib import Path

import pytest
import synthetic_run

from pindiag import api
from pindiag.model import Report
from pindiag.store import RunDirectory

from .recompute import Recomputed, interval, rate

DATA = Path(__file__).parents[1] / "data" / "h200"
RECORDED = sorted(path.name.removesuffix(".tar.xz") for path in DATA.glob("*.tar.xz"))
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
    return Recomputed(run.path, report.baseline)


def near(value: tuple[float, float] | None) -> object:
    return None if value is None else pytest.approx(value)


def test_throughput(report: Report, raw: Recomputed) -> None:
    for trial in report.trials:
        blocks = raw.shown(trial.id)
        assert sorted(trial.blocks) == sorted(block["block"] for block in blocks)
        assert trial.steps == sum(block["steps"] for block in blocks)
        if not blocks:
            assert trial.samples_per_second is None
            continue
        assert trial.samples_per_second is not None
        rates = [rate(block) for block in blocks]
        assert trial.samples_per_second.median == pytest.approx(statistics.median(rates))
        assert trial.samples_per_second.ci95 == near(interval(rates))
        assert {raw.isolation(block["launch"]) for block in blocks} == {trial.isolation}


def test_ratios(report: Report, raw: Recomputed) -> None:
    for trial in report.trials:
        if trial.id == report.baseline:
            continue
        ratios = raw.pairs(trial.id, raw.shown(trial.id))
        if not ratios:
            assert trial.versus_baseline is None
            continue
        assert trial.versus_baseline is not None
        assert trial.versus_baseline.ratio == pytest.approx(statistics.geometric_mean(ratios))
        assert trial.versus_baseline.ci95 == near(interval(ratios))
        assert trial.versus_baseline.rounds == len(ratios)


def test_ceilings(report: Report, raw: Recomputed) -> None:
    def ran(ablation: str) -> set[str]:
        made = (treatment for treatment in raw.treatments.values() if treatment.get("ablation") == ablation)
        return {treatment["id"] for treatment in made if raw.shown(treatment["id"])}

    assert {report.ceilings.compute_only} - {None} == ran("compute_only")
    assert set(report.ceilings.host_batch) == ran("host_batch")
    assert set(report.ceilings.loader_only) == ran("loader_only")


def test_verification(report: Report, raw: Recomputed) -> None:
    verified = {block["trial"] for block in raw.blocks if raw.orders[block["launch"]]["purpose"] == "verify"}
    candidate = next(iter(verified - {raw.baseline}), None)
    found = report.verification
    if candidate is None:
        assert found is None
        return
    assert found is not None
    ratios = raw.pairs(candidate, raw.of(candidate, ["verify"]), ["verify"])
    assert (found.pairs, found.ratio) == (len(ratios), pytest.approx(statistics.geometric_mean(ratios)))
    assert found.ci95 == near(interval(ratios))
    assert set(found.launches) == {block["launch"] for trial in verified for block in raw.of(trial, ["verify"])}
    live = raw.pairs(candidate, raw.of(candidate, isolation="live"))
    assert found.live_ratio == (pytest.approx(statistics.geometric_mean(live)) if live else None)
    assert found.live_ci95 == near(interval(live))
    if found.ci95 is None or not live:
        assert found.agrees_with_live is None
    else:
        assert found.agrees_with_live is (found.ci95[0] <= statistics.geometric_mean(live) <= found.ci95[1])


def test_the_recommended_gain(report: Report, raw: Recomputed) -> None:
    found = report.recommendation
    assert found is not None
    if found.firmness == "verified":
        assert report.verification is not None
        assert found.versus_baseline is not None
        assert found.versus_baseline.ratio == report.verification.ratio
        assert len(raw.pairs(found.trial, raw.of(found.trial, ["verify"]), ["verify"])) >= 4


def test_noise_floor(report: Report, raw: Recomputed) -> None:
    ratio, rounds = raw.noise()
    assert report.noise_floor.ratio == (None if ratio is None else pytest.approx(ratio))
    assert str(rounds) in report.noise_floor.source


def test_stages_and_steps(report: Report, raw: Recomputed) -> None:
    for trial in report.trials:
        blocks, stages = raw.shown(trial.id), trial.stage_ms
        for stage in ("wait", "transfer", "synchronise", "optimizer"):
            value = getattr(stages, stage)
            if value is not None:
                whole = sum(block[f"{stage}_ms"] for block in blocks)
                assert value == pytest.approx(whole / sum(block["steps"] for block in blocks))


def test_every_block_is_where_it_is_said_to_be(report: Report, run: RunDirectory) -> None:
    for block in report.blocks:
        name, _, line = block.journal.rpartition(":")
        found = json.loads((run.journal / name).read_text().splitlines()[int(line) - 1])
        assert (found["type"], found["block"]) == ("block", block.id)
        assert (found["samples"], found["seconds"]) == (block.samples, block.seconds)


def test_launches_are_those_of_the_journal(report: Report, raw: Recomputed) -> None:
    shown = {launch.id: (launch.isolation, launch.purpose) for launch in report.launches}
    assert shown == {number: (raw.isolation(number), order["purpose"]) for number, order in raw.orders.items()}
