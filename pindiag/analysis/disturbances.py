"""What disturbed blocks from outside, and what that means for them; said of blocks, and of the run as a whole."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from statistics import median
from typing import get_args

from pindiag.analysis.evidence import RunEvidence
from pindiag.analysis.fact import fact
from pindiag.disturbance import Kind, is_usual
from pindiag.journal import Launch
from pindiag.model import Block, BlockLoad, Fact
from pindiag.stats import student_quantile

FEWEST_OTHERS = 3
"""Rounds that one is held against."""

FAR_PROBABILITY = 0.9995
"""Of a round's two baselines differing less than that by chance, going by the other rounds: one run in 170 with six
rounds marks one for nothing."""

FAR_RATIO = 1.1
"""A smaller difference is none that a reader must know of, however quiet the other rounds are."""

NOT_SEEN = "no record tells what ran beside the blocks"
OLDER = "it was recorded before this was measured"

_WORDS: dict[Kind, str] = {
    "gpu": "heat or power held the GPU's clocks down",
    "heat": "heat held the CPUs' clocks down",
    "clock": "the CPUs were clocked far lower",
    "quota": "a CPU quota held the target back for what others used of it",
    "host": "the host of this virtual machine took CPUs away",
    "others": "other processes took CPUs that the target wanted",
}


def marks(run: RunEvidence) -> dict[int, str]:
    """Block to what a reader should know of it, where something disturbed it or it looks as if something had."""
    found = dict(_uneven(run))
    for launch in run.journal.launches:
        for block, what in launch.disturbed.items():
            found[block] = f"disturbed: {what.words}{_consequence(launch, block)}"
    return found


def _consequence(launch: Launch, block: int) -> str:
    if block in launch.replaced:
        return "; another block of this treatment and round went undisturbed and counts instead"
    return "; it counts all the same"


def _uneven(run: RunEvidence) -> Iterator[tuple[int, str]]:
    """Blocks of the script as written that differ within a round far more than in the other rounds.

    They are only said: leaving them out by their figures would make the noise floor look lower than it is.
    """
    pairs = _baseline_pairs(run)
    logs = {number: math.log(_rate(second) / _rate(first)) for number, (first, second) in pairs.items()}
    for number, own in logs.items():
        others = [log for other, log in logs.items() if other != number]
        if len(others) < FEWEST_OTHERS:
            return
        spread = math.sqrt(sum(log * log for log in others) / len(others))
        if abs(own) <= max(student_quantile(FAR_PROBABILITY, len(others)) * spread, math.log(FAR_RATIO)):
            continue
        words = f"the script as written differs by {math.exp(abs(own)):.2f} × between its two blocks of this round"
        for block in pairs[number]:
            yield block.block, f"{words}, far more than in others; it counts all the same"


def _baseline_pairs(run: RunEvidence) -> dict[int, tuple[Block, Block]]:
    rounds: dict[int, list[Block]] = defaultdict(list)
    for block in run.journal.blocks("discover", "round"):
        if run.journal.trial(block.trial) == run.journal.baseline_id:
            rounds[block.round].append(block)
    return {number: (blocks[0], blocks[1]) for number, blocks in rounds.items() if len(blocks) >= 2}


def _rate(block: Block) -> float:
    return block.samples / block.seconds


def of_disturbances(run: RunEvidence) -> Iterator[Fact]:
    """What was seen beside the blocks of the whole run."""
    launches = run.journal.launches
    loads = [load for launch in launches for load in launch.all(BlockLoad)]
    disturbed = [block for launch in launches for block in launch.disturbed]
    source = f"samples of {len(loads)} blocks"
    share = len(disturbed) / len(loads) if loads else None
    yield fact("disturbed_blocks", len(disturbed) if loads else None, "blocks", source, NOT_SEEN)
    yield fact("disturbed_blocks_share", share, "1", source, NOT_SEEN)
    yield fact("disturbed_as_usual", _is_usual(launches) if loads else None, None, source, NOT_SEEN)
    yield fact("disturbances", in_words(run) if loads else None, None, source, NOT_SEEN)
    for name, unit in (("foreign_cpus", "CPUs"), ("stolen_cpus", "CPUs"), ("cpu_clock_mhz", "MHz")):
        values = [value for load in loads if (value := getattr(load, name)) is not None]
        untold = OLDER if loads else NOT_SEEN
        reason = next((load.missing[name] for load in loads if name in load.missing), untold)
        yield fact(name, median(values) if values else None, unit, f"median, {source}", reason)


def _is_usual(launches: list[Launch]) -> bool:
    """Whether the load was taken as part of the machine in a live launch, or is so over the whole run."""
    disturbed = sum(len(launch.disturbed) for launch in launches)
    over_all = is_usual(disturbed, sum(len(launch.all(BlockLoad)) for launch in launches))
    return over_all or any(launch.load_is_usual for launch in launches if launch.isolation == "live")


def in_words(run: RunEvidence) -> str:
    """What disturbed how many blocks, and what was done."""
    launches = run.journal.launches
    loads = [load for launch in launches for load in launch.all(BlockLoad)]
    blocks = f"{len(loads)} block{'s' * (len(loads) != 1)}"
    kinds = Counter(what.kind for launch in launches for what in launch.disturbed.values())
    if not kinds:
        return f"nothing from outside was seen to disturb any of {blocks}"
    said = [f"{_of_kind(run, kind)} during {kinds[kind]} of {blocks}" for kind in get_args(Kind) if kinds[kind]]
    return f"{'; '.join(said)}. {_done(launches)}"


def _of_kind(run: RunEvidence, kind: Kind) -> str:
    if kind != "others":
        return _WORDS[kind]
    loads = [
        load
        for launch in run.journal.launches
        for load in launch.all(BlockLoad)
        if load.block in launch.disturbed
        and launch.disturbed[load.block].kind == kind
        and load.foreign_cpus is not None
    ]
    return f"others used {median(load.foreign_cpus or 0.0 for load in loads):.1f} of {loads[0].cpus} CPUs"


def _done(launches: list[Launch]) -> str:
    replaced = sum(len(launch.replaced) for launch in launches)
    kept = sum(len(launch.disturbed) for launch in launches) - replaced
    if _is_usual(launches):
        return (
            "That is more than a third, so it is taken as part of the machine: blocks count all the same, and all "
            "figures are those of a machine as busy as this"
        )
    out = f"{replaced} {'was' if replaced == 1 else 'were'} repeated and left out" if replaced else ""
    marked = f"{kept} {'counts' if kept == 1 else 'count'} and {'is' if kept == 1 else 'are'} marked" if kept else ""
    return ", ".join(part for part in (out, marked) if part)
