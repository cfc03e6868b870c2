"""Inputs from the recorded live prototype (tests/data/h200/live_*.json): every block of four rounds on one H200."""

import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean

from pindiag.model import Fact, Ratio
from pindiag.rules import Inputs
from pindiag.stats import Rate, compare, geometric_mean, median, paired_ratios

from .build import RUN_LEVEL, ceilings_of, trial

DATA = Path(__file__).parents[1] / "data" / "h200"


def blocks(name):
    """Blocks by trial id."""
    found = defaultdict(list)
    for block in json.loads((DATA / f"{name}.json").read_text())["blocks"]:
        found[_trial(block)].append(block)
    return found


def _trial(block):
    workers, pin, wait_free = (int(block.get(key) or 0) for key in ("nw", "pin", "nb"))
    return {
        "full": f"nw{workers}-pin{pin}-nb{wait_free}",
        "loader": f"loader_only-nw{workers}-pin{pin}",
        "host": f"host_batch-pin{pin}-nb{wait_free}",
        "compute": "compute_only",
    }[block["kind"]]


def recorded(name, *, baseline, sweep=True, ablations=True, facts=None):
    """Inputs of a run whose script as written is one of the recorded configurations."""
    found = blocks(name)
    rates = [Rate(one["round"], each, one["sps"]) for each, several in found.items() for one in several]
    configurations = [each for each in found if each.startswith("nw")]
    standing = compare([rate for rate in rates if rate.trial in configurations], baseline)
    own_workers = baseline.partition("-")[0]
    beside = [each for each in found if not each.startswith("nw") and (own_workers in each or "_only-nw" not in each)]
    alone = {
        each: compare([rate for rate in rates if rate.trial in (each, baseline)], baseline)[each] for each in beside
    }
    wanted = (standing if sweep else {}) | (alone if ablations else {})
    trials = [trial(baseline, ci=(1.0, 1.0), p=1.0, rounds=4)]
    trials += [
        trial(each, ratio=mean.value, ci=mean.ci95, p=mean.p, rounds=mean.count) for each, mean in wanted.items()
    ]

    def between(one, other):
        ratios = paired_ratios([rate for rate in rates if rate.trial in (one, other)], other).get(one)
        mean = geometric_mean(ratios) if ratios else None
        return mean and Ratio(ratio=mean.value, ci95=mean.ci95, rounds=mean.count, p_corrected=mean.p)

    known = [fact for each in [baseline, *wanted] if each.startswith("nw") for fact in _facts(each, found[each])]
    given = {"accelerator_present": True, "batch_bytes": 38535168, "sample_bytes": 602112, **(facts or {})}
    known += [_fact(key, value, None if key in RUN_LEVEL else baseline) for key, value in given.items()]
    scaled = [_at(each, median([block["sps"] for block in found[each.id]])) for each in trials]
    return Inputs(facts=known, trials=scaled, baseline=baseline, ceilings=ceilings_of(scaled), between=between)


def _at(made, rate):
    estimate = type(made.samples_per_second)(median=rate, ci95=None)
    return type(made)(
        **{**{name: getattr(made, name) for name in made.__struct_fields__}, "samples_per_second": estimate}
    )


def _facts(name, several):
    step, wait, transfer = (fmean(block[key] for block in several) for key in ("step_ms", "wait_ms", "h2d_ms"))
    figures = {
        "step_ms": step,
        "wait_ms": wait,
        "transfer_ms": transfer,
        "wait_share": wait / step,
        "transfer_share": transfer / step,
    }
    return [_fact(key, value, name) for key, value in figures.items()]


def _fact(name, value, of):
    return Fact(name=name, value=value, unit=None, trial=of, source="recorded blocks")
