"""Makes rules' inputs from a few words: trial ids, ratios, facts."""

import re

from pindiag.model import (
    BlockFigures,
    Ceilings,
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
    "target_error intraop_threads_pin_thread intraop_threads_no_pin_thread".split()
)


def configuration(trial_id):
    """The configuration that a trial's id names: nw4-pin1-nb0-pf4-pw, and -bs128 for a batch size."""
    plain = trial_id.partition("+")[0]
    parts = dict(re.fullmatch(r"(nw|pin|nb|pf|bs|pw)(.*)", part).groups() for part in plain.split("-"))
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


def treated(trial_id):
    """Ablation, tweak and configuration of an id: host_batch-pin1-nb0, loader_only-nw4-pin1, nw4-pin1+lazy_sync.

    What an ablation's id leaves out is as in nw4-pin0-nb0.
    """
    ablation, _, named = trial_id.partition("-")
    if ablation not in ("compute_only", "host_batch", "loader_only"):
        return None, trial_id.partition("+")[2] or None, configuration(trial_id)
    given = dict(part.groups() for part in re.finditer(r"(nw|pin|nb)(\w+)", named))
    whole = {"nw": "4", "pin": "0", "nb": "0", **given}
    return ablation, None, configuration("-".join(f"{key}{value}" for key, value in whole.items()))


def ceilings_of(trials):
    """The ablations among trials that were measured."""
    ran = {kind: [one.id for one in trials if one.ablation == kind] for kind in ("host_batch", "loader_only")}
    compute = next((one.id for one in trials if one.ablation == "compute_only"), None)
    return Ceilings(compute_only=compute, **ran)


def trial(trial_id, *, ratio=1.0, ci=None, p=None, rounds=6, status="measured", blocks=(), rate=1000.0, epoch_s=None):
    if p is None:
        p = 0.001 if ci and (ci[0] > 1 or ci[1] < 1) else 0.5
    ablation, tweak, made = treated(trial_id)
    versus = Ratio(ratio=ratio, ci95=tuple(ci) if ci else None, rounds=rounds, p_corrected=p)
    return Trial(
        id=trial_id,
        kind="ablation" if ablation else "tweak" if tweak else "configuration",
        configuration=made,
        ablation=ablation,
        tweak=tweak,
        isolation="live",
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
    tweak=None,
    firmness="measured",
    verified=None,
    floor=1.02,
    target=None,
    rounds=6,
    loader="train.py:14",
    epochs=None,
    live=None,
    whole_epochs=None,
):
    """Inputs of a run.

    `trials` maps ids (of configurations, ablations and tweaks) to keywords of `trial`; `verified` is (ratio, low, high)
    of fresh pairs, `live` the same of live rounds that do not agree with it. `tweak` is the trial of what comes before
    the recommended configuration, and what was verified.
    """
    epochs = epochs or {}
    made = [trial(baseline, ci=(1.0, 1.0), p=1.0, blocks=[1, 2], epoch_s=epochs.get(baseline))]
    for number, (name, figures) in enumerate((trials or {}).items(), start=3):
        made.append(trial(name, blocks=[number], epoch_s=epochs.get(name), **figures))
    recommendation = recommend and Recommendation(
        trial=recommend,
        configuration=configuration(recommend),
        versus_baseline=None,
        firmness="verified" if verified and not tweak else firmness,
        frontier=[],
        tweak=tweak,
    )
    verification = verified and Verification(
        trial=tweak,
        pairs=4,
        launches=[21, 22, 23, 24, 25, 26, 27, 28],
        baseline_samples_per_second=[1000.0] * 4,
        recommended_samples_per_second=[1000.0 * verified[0]] * 4,
        ratio=verified[0],
        ci95=(verified[1], verified[2]),
        agrees_with_live=False if live else None,
        live_ratio=live and live[0],
        live_ci95=live and (live[1], live[2]),
        epochs=whole_epochs,
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
        ceilings=ceilings_of(made),
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
