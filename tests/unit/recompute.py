"""The figures of a run once more: from the raw lines of its journals, with arithmetic of its own.

Nothing of the product reckons here, so that a report and its records are compared with each other, not with themselves.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import t as student
from scipy.stats import ttest_ind

from pindiag.model import Analysis, Report

Line = dict[str, Any]
RACE = ("discover", "round")


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % t-interval of the geometric mean; None below three values."""
    if len(values) < 3:
        return None
    logs = [math.log(value) for value in values]
    middle, error = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    half = student.ppf(0.975, len(logs) - 1) * error
    return math.exp(middle - half), math.exp(middle + half)


def read_lines(run: Path) -> list[Line]:
    """All lines of a run directory's journals."""
    files = sorted((run / "journal").glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_bytes().split(b"\n") if line]


class Recomputed:
    """A run's journal lines, and what they come to."""

    def __init__(self, lines: Iterable[Line], baseline: str) -> None:
        self.baseline = baseline
        self.by_type: dict[str, list[Line]] = defaultdict(list)
        for line in sorted(lines, key=lambda line: line["t_ns"]):
            self.by_type[line["type"]].append(line)

    @cached_property
    def orders(self) -> dict[int, Line]:
        """What each launch was started for."""
        return {began["launch"]: began["order"] for began in self.by_type["launch_began"]}

    def isolation(self, launch: int) -> str:
        return self.orders[launch].get("isolation", "fresh")

    @cached_property
    def treatments(self) -> dict[str, Line]:
        """All treatments that some order names, by id."""
        told = [*self.orders.values(), *(line["next"] for line in self.by_type["blocks_ordered"])]
        blocks = [block for order in told for block in order.get("blocks", [])]
        found = [order.get("treatment") for order in [*told, *blocks]]
        planned = [treatment for order in told for treatment in order.get("planned", [])]
        return {treatment["id"]: treatment for treatment in [*found, *planned] if treatment}

    @cached_property
    def blocks(self) -> list[Line]:
        """Blocks that count, with the name of their trial."""
        changed = {line["launch"]: line["block"] for line in reversed(self.by_type["dataset_changed"])}
        refused = {(line["launch"], line["trial"]) for line in self.by_type["treatment_applied"] if line["refused"]}

        def counts(block: Line) -> bool:
            if block["status"] != "counted" or not block["samples"] or not block["seconds"]:
                return False
            launch = block["launch"]
            spoilt = block["block"] > changed.get(launch, math.inf) or (launch, block["trial"]) in refused
            return self.isolation(launch) == "fresh" or not spoilt

        named = [block | {"trial": self.name(block["trial"])} for block in self.by_type["block"]]
        valid = [block for block in named if counts(block)]
        disturbed = self.disturbed
        calm = {turn(block) for block in valid if block["block"] not in disturbed}
        return [block for block in valid if block["block"] not in disturbed or turn(block) not in calm]

    @property
    def disturbed(self) -> set[int]:
        """Blocks of live launches that something from outside disturbed; none where it did so in more than a third."""
        found: set[int] = set()
        for launch in {
            line["launch"] for line in self.by_type["block_load"] if self.isolation(line["launch"]) == "live"
        }:
            loads = [line for line in self.by_type["block_load"] if line["launch"] == launch]
            own = {line["block"] for line in loads if is_disturbed(line)}
            found |= own if 3 * len(own) <= len(loads) else set()
        return found

    def name(self, trial: str) -> str:
        return self.baseline if trial == "baseline" else trial

    def of(self, trial: str, purposes: Iterable[str] = RACE, isolation: str | None = None) -> list[Line]:
        """Counted blocks of a trial."""
        return [
            block
            for block in self.blocks
            if block["trial"] == trial
            and self.orders[block["launch"]]["purpose"] in purposes
            and isolation in (None, self.isolation(block["launch"]))
        ]

    def shown(self, trial: str) -> list[Line]:
        """The blocks that a trial's figures come from: live ones of the baseline, fresh ones of others, if any."""
        first, second = ("live", "fresh") if trial == self.baseline else ("fresh", "live")
        return self.of(trial, isolation=first) or self.of(trial, isolation=second)

    def pairs(self, trial: str, blocks: Sequence[Line], purposes: Iterable[str] = RACE) -> list[float]:
        """Ratios to the baseline of the same round, geometric means within it."""
        own, reference = by_round(blocks), by_round(self.of(self.baseline, purposes))
        return [own[number] / reference[number] for number in sorted(own) if number in reference]

    def steady_pairs(self, trial: str) -> list[float]:
        """The same of verifying launches, over steps with workers ahead where whole epochs were counted."""
        own, reference = (by_round(steady(self.of(name, ["verify"]))) for name in (trial, self.baseline))
        return [own[number] / reference[number] for number in sorted(own) if number in reference]

    def noise(self) -> tuple[float | None, int]:
        """Half-width of an interval between the two baselines of a round, spread about 0."""
        rounds = defaultdict(list)
        for block in self.of(self.baseline):
            rounds[block["round"]].append(math.log(rate(block)))
        differences = [logs[1] - logs[0] for logs in rounds.values() if len(logs) >= 2]
        if len(differences) < 3:
            return None, len(differences)
        count = len(differences)
        spread = math.sqrt(sum(value * value for value in differences)) / count
        return math.exp(student.ppf(0.975, count) * spread), count


def turn(block: Line) -> tuple[int, int, str]:
    """Which turn a block was; a repeated one is the same."""
    return block["launch"], block["round"], block["trial"]


def is_disturbed(load: Line) -> bool:
    """Whether others took what the target wanted: its GPU's clocks, quota, virtual CPUs or CPUs."""
    target, foreign, quota, cpus = (load[name] for name in ("target_cpus", "foreign_cpus", "quota_cpus", "cpus"))
    if max(load["gpu_slowed_share"] or 0, load.get("cpu_slowed_share") or 0) >= 0.25:
        return True
    if target is None:
        return False
    if quota is not None and (load["throttled_share"] or 0) >= 0.1 and target < 0.8 * quota:
        return True
    if (load["stolen_cpus"] or 0) >= 0.05 * max(target, 1):
        return True
    if foreign is None or foreign < 0.15 * cpus:
        return False
    queued = load["queued_share"]
    return foreign + target >= 0.9 * cpus if queued is None else queued >= 0.05


def steady(blocks: Iterable[Line]) -> list[Line]:
    """Blocks as blocks of steps; epochs of which less than half is steady tell nothing."""
    found = []
    for block in blocks:
        whole = block.get("epochs")
        if whole is None:
            found.append(block)
        elif 2 * whole["steady_steps"] >= block["steps"] and whole["steady_seconds"] > 0:
            found.append(
                {"round": block["round"], "samples": whole["steady_samples"], "seconds": whole["steady_seconds"]}
            )
    return found


def rate(block: Line) -> float:
    """Samples a second."""
    return block["samples"] / block["seconds"]


def by_round(blocks: Iterable[Line]) -> dict[int, float]:
    """Geometric mean of the throughput in each round."""
    rounds = defaultdict(list)
    for block in blocks:
        rounds[block["round"]].append(rate(block))
    return {number: statistics.geometric_mean(values) for number, values in rounds.items()}


# --------------------------------------------------------------------------------------------- against a report


def near(value: tuple[float, float] | None) -> object:
    return None if value is None else pytest.approx(value)


def assert_throughput(report: Report | Analysis, raw: Recomputed) -> None:
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


def assert_ratios(report: Report | Analysis, raw: Recomputed) -> None:
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


def assert_ceilings(report: Report | Analysis, raw: Recomputed) -> None:
    def ran(ablation: str) -> set[str]:
        made = (treatment for treatment in raw.treatments.values() if treatment.get("ablation") == ablation)
        return {treatment["id"] for treatment in made if raw.shown(treatment["id"])}

    assert {report.ceilings.compute_only} - {None} == ran("compute_only")
    assert set(report.ceilings.host_batch) == ran("host_batch")
    assert set(report.ceilings.loader_only) == ran("loader_only")


def assert_verification(report: Report | Analysis, raw: Recomputed) -> None:
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
    steady_pairs = raw.steady_pairs(candidate)
    if min(len(live), len(steady_pairs)) < 3:
        assert found.agrees_with_live is None
    else:
        logs = [[math.log(ratio) for ratio in ratios] for ratios in (live, steady_pairs)]
        assert found.agrees_with_live is bool(ttest_ind(*logs, equal_var=False).pvalue >= 0.05)


def assert_recommended_gain(report: Report | Analysis, raw: Recomputed) -> None:
    found = report.recommendation
    assert found is not None
    if found.firmness == "verified":
        assert report.verification is not None
        assert found.versus_baseline is not None
        assert found.versus_baseline.ratio == report.verification.ratio
        assert len(raw.pairs(found.trial, raw.of(found.trial, ["verify"]), ["verify"])) >= 4


def assert_noise_floor(report: Report | Analysis, raw: Recomputed) -> None:
    ratio, rounds = raw.noise()
    assert report.noise_floor.ratio == (None if ratio is None else pytest.approx(ratio))
    assert str(rounds) in report.noise_floor.source


def assert_stages_and_steps(report: Report | Analysis, raw: Recomputed) -> None:
    for trial in report.trials:
        blocks, stages = raw.shown(trial.id), trial.stage_ms
        for stage in ("wait", "transfer", "synchronise", "optimizer"):
            value = getattr(stages, stage)
            if value is not None:
                whole = sum(block[f"{stage}_ms"] for block in blocks)
                assert value == pytest.approx(whole / sum(block["steps"] for block in blocks))


def assert_recomputed(report: Report | Analysis, raw: Recomputed) -> None:
    """Hold all figures of a report, or of its analysis, to the lines."""
    assert_throughput(report, raw)
    assert_ratios(report, raw)
    assert_ceilings(report, raw)
    assert_verification(report, raw)
    assert_noise_floor(report, raw)
    assert_stages_and_steps(report, raw)
    assert_recommended_gain(report, raw)
