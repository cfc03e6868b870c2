"""Makes rules' inputs from a few words: trial ids, ratios, facts."""

import re

from pindiag.model import (
    BlockFigures,
    Configuration,
    Estimate,
    Fact,
    LoaderFigures,
    MemoryBytes,
    NoiseFloor,
    Ratio,
    Recommendation,
    StageMs,
    TargetFigures,
    Trial,
    Verification,
)
from pindiag.rules import Inputs

RUN_LEVEL = frozenset(
    "accelerator_present usable_cpus logical_cpus batch_bytes sample_bytes batch_samples tensors_per_batch "
    "batches_per_epoch noise_floor_ratio memory_bytes memory_available_bytes shm_free_bytes "
    "cgroup_memory_limit_bytes memory_available_min_bytes swap_growth_bytes pin_asked start_method target_status "
    "target_error".split()
)


def configuration(trial_id):
    """The configuration that a trial's id names: nw4-pin1-nb0-pf4-pw, and -bs128 for a batch size."""
    parts = dict(re.fullmatch(r"(nw|pin|nb|pf|bs|pw)(.*)", part).groups() for part in trial_id.split("-"))
    workers = int(parts["nw"])
    non_blocking = {None: None, "0": False, "1": True, "mixed": "mixed"}[parts.get("nb")]
    return Configuration(
        num_workers=workers,
        pin_memory=parts["pin"] == "1",
        non_blocking=non_blocking,
        prefetch_factor=int(parts.get("pf", 2)) if workers else None,
        persistent_workers="pw" in parts,
        batch_size=int(parts.get("bs", 64)),
    )


def trial(trial_id, *, ratio=1.0, ci=None, p=None, rounds=6, status="measured", blocks=(), rate=1000.0, epoch_s=None):
    if p is None:
        p = 0.001 if ci and (ci[0] > 1 or ci[1] < 1) else 0.5
    versus = Ratio(ratio=ratio, ci95=tuple(ci) if ci else None, rounds=rounds, p_corrected=p)
    return Trial(
        id=trial_id,
        kind="configuration",
        configuration=configuration(trial_id),
        ablation=None,
        tweak=None,
        isolation="fresh",
        status=status,
        reason=None if status == "measured" else "it failed",
        blocks=list(blocks),
        steps=80,
        samples_per_second=Estimate(median=rate * ratio, ci95=None) if status == "measured" else None,
        versus_baseline=versus if status == "measured" else None,
        predicted_samples_per_second=None,
        stage_ms=StageMs(wait=None, transfer=None, synchronise=None, optimizer=None, script=None),
        gpu=None,
        pin_thread_ms=None,
        worker_ms=None,
        memory_bytes=MemoryBytes(pss=None, pinned=None, shm=None),
        sampler=None,
        profiler=None,
        startup_s=None,
        epoch_s=epoch_s,
    )


def facts(named, trial_id):
    return [
        Fact(
            name=name,
            value=value,
            unit=None,
            trial=None if name in RUN_LEVEL else trial_id,
            source="blocks 1, 2",
            reason=None if value is not None else "no sampler ran",
        )
        for name, value in named.items()
    ]


def inputs(
    *,
    baseline="nw0-pin0",
    facts_=None,
    trials=None,
    trial_facts=None,
    recommend=None,
    firmness="measured",
    verified=None,
    floor=1.02,
    target=None,
    rounds=6,
    loader="train.py:14",
    epochs=None,
):
    """Inputs of a run: `trials` maps ids to keywords of `trial`, `verified` is (ratio, low, high)."""
    epochs = epochs or {}
    made = [trial(baseline, ci=(1.0, 1.0), p=1.0, blocks=[1, 2], epoch_s=epochs.get(baseline))]
    for number, (name, figures) in enumerate((trials or {}).items(), start=3):
        made.append(trial(name, blocks=[number], epoch_s=epochs.get(name), **figures))
    recommendation = recommend and Recommendation(
        trial=recommend,
        configuration=configuration(recommend),
        versus_baseline=None,
        firmness="verified" if verified else firmness,
        frontier=[],
    )
    verification = verified and Verification(
        pairs=4,
        launches=[21, 22, 23, 24, 25, 26, 27, 28],
        baseline_samples_per_second=[1000.0] * 4,
        recommended_samples_per_second=[1000.0 * verified[0]] * 4,
        ratio=verified[0],
        ci95=(verified[1], verified[2]),
        agrees_with_live=None,
    )
    known = facts(facts_ or {}, baseline)
    for name, more in (trial_facts or {}).items():
        known += facts(more, name)
    return Inputs(
        facts=known,
        trials=made,
        blocks=[block(number, baseline) for number in range(1, rounds + 1)],
        baseline=baseline,
        recommendation=recommendation or None,
        verification=verification or None,
        noise_floor=NoiseFloor(ratio=floor, source="baseline against baseline"),
        target=TargetFigures(**{"exit": "stopped by pindiag", "status": "ok", "files_changed": [], **(target or {})}),
        loader=loader
        and LoaderFigures(
            chosen=loader, why="it trains", others=[], batches_per_epoch=100, sample_bytes=1, batch_bytes=64
        ),
    )


def block(number, baseline):
    return BlockFigures(
        id=number,
        launch=number,
        round=number,
        trial=baseline,
        settle_steps=5,
        steps=40,
        samples=2560,
        seconds=1.5,
        status="counted",
        reason=None,
        purpose="round",
        journal="launch-001.jsonl:9",
    )
