"""The figures of a run once more: from the raw lines of its journals, with arithmetic of its own.

Nothing of the product is used, so that a report and its records are compared with each other, not with themselves.
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

from scipy.stats import t as student

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


class Recomputed:
    """A run directory's journals, read as text."""

    def __init__(self, run: Path, baseline: str) -> None:
        self.baseline = baseline
        files = sorted((run / "journal").glob("*.jsonl"))
        lines = [json.loads(line) for path in files for line in path.read_text().splitlines()]
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
        return [block for block in named if counts(block)]

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


def rate(block: Line) -> float:
    """Samples a second."""
    return block["samples"] / block["seconds"]


def by_round(blocks: Iterable[Line]) -> dict[int, float]:
    """Geometric mean of the throughput in each round."""
    rounds = defaultdict(list)
    for block in blocks:
        rounds[block["round"]].append(rate(block))
    return {number: statistics.geometric_mean(values) for number, values in rounds.items()}
