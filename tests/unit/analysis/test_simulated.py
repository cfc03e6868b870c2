"""Sweeps that the real plan ordered on simulated pipelines with troubles: analysed, and recomputed beside it."""

import random

import msgspec
import pytest
from simulator import Noise, Pipeline, Simulation, Troubles, loader, sweep_spec

from pindiag.analysis import analyse

from ..recompute import Recomputed, assert_recomputed
from .honest import assert_honest

NAMES = [f"nw{workers}-pin{pin}{nb}" for workers in (0, 8) for pin in (0, 1) for nb in ("", "-nb0", "-nb1")]
NAMES += ["compute_only", "loader_only-nw4-pin0", "loader_only-nw4-pin1", "host_batch-pin1-nb1"]


def simulated(seed: int) -> Simulation:
    """A sweep in which some treatments die, hang, throttle or do not fit, and the dataset may change."""
    chance = random.Random(seed)

    def some(share: float) -> frozenset[str]:
        return frozenset(name for name in NAMES if chance.random() < share)

    troubles = Troubles(
        dies=dict.fromkeys(sorted(some(0.1)), "a worker was killed: out of memory"),
        hangs=some(0.05),
        no_room=some(0.1),
        throttles=some(0.1),
        dataset_changes=chance.random() < 0.3,
        own_iteration=chance.random() < 0.1,
        steps=chance.choice([1 << 40, 3000]),
        fails_past_end=chance.random() < 0.2,
        live_fails=chance.random() < 0.1,
    )
    accelerator = chance.choice([None, "cuda"])
    baseline = loader(non_blocking=False if accelerator else None, pin_memory=chance.random() < 0.5)
    pipeline = Pipeline(accelerator=accelerator, threads=8, host_s=chance.choice([0.0, 0.002]))
    spec = sweep_spec(budget_s=chance.choice([60.0, 300.0]), sweep=chance.random() < 0.8)
    return Simulation(spec, baseline, pipeline, Noise(drift=chance.choice([0.0, 0.1])), troubles, seed=seed).run()


@pytest.mark.parametrize("seed", range(40))
def test_whatever_happened(seed: int) -> None:
    sweep = simulated(seed)
    found = analyse(sweep.spec, sweep.records, [], {}, {})
    assert_honest(found)
    assert found.baseline == sweep.baseline.id
    assert_recomputed(found, Recomputed(msgspec.to_builtins(sweep.records), found.baseline))
