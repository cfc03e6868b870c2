from pindiag import rules

from .build import inputs
from .recorded import recorded

GPU = {
    "accelerator_present": True,
    "batch_samples": 64,
    "batch_bytes": 38535168,
    "sample_bytes": 602112,
    "gpu_busy_share": 0.2,
    "memory_bytes": 128_000_000_000,
    "pinned_reckoned_bytes": 604_000_000,
    "usable_cpus": 16,
}


def told(**given):
    return {factor.name: factor for factor in rules.factors(inputs(**given))}


def test_figures_stand_beside_the_rules_of_thumb():
    factors = told(
        baseline="nw4-pin0-nb0",
        facts_=GPU,
        trials={
            "nw4-pin1-nb0": {"ratio": 1.1, "ci": [1.05, 1.15]},
            "nw8-pin0-nb0": {"ratio": 1.0, "ci": [0.95, 1.05]},
            "nw16-pin0-nb0": {"ratio": 0.9, "ci": [0.85, 0.95]},
            "nw4-pin0-nb0-bs128": {"ratio": 1.6, "ci": [1.5, 1.7]},
        },
    )
    assert list(factors) == ["batch size", "sample size", "GPU use", "memory", "workers", "non_blocking"]
    assert factors["batch size"].measured == (
        "64 samples, 38.5 MB a batch. Over the script as written: batch_size=128 1.60 × (1.50–1.70)."
    )
    assert "pin_memory=True 1.10 × (1.05–1.15)" in factors["sample size"].measured
    assert factors["GPU use"].measured.startswith("Kernels run 20 % of the time.")
    assert factors["memory"].measured == "128 GB in all, 604 MB of it pinned."
    assert factors["workers"].measured == (
        "4 as written, 16 usable CPUs. Over the script as written: num_workers=8 1.00 × (0.95–1.05); "
        "num_workers=16 0.90 × (0.85–0.95)."
    )
    assert factors["non_blocking"].measured == "False as written. Its change alone was not tried."


def test_a_starved_gpu_is_told_beside_its_use():
    use = told(facts_={**GPU, "gpu_starved_share": 0.42})["GPU use"].measured
    assert use.startswith("Kernels run 20 % of the time. It is starved 42 % of the time while the script waits.")


def test_what_was_not_measured_says_why():
    factors = told(facts_={"accelerator_present": True, "gpu_busy_share": None, "nvml_utilization": None})
    assert factors["GPU use"].value is None
    assert factors["GPU use"].measured == "not measured (nvml_utilization was not measured: no sampler ran)"


def test_without_an_accelerator_it_is_said():
    factors = told(facts_={"accelerator_present": False})
    assert factors["GPU use"].measured == "No accelerator here."
    assert factors["non_blocking"].measured == "No accelerator here, so nothing is copied to one."


def test_ceilings_stand_beside_what_whole_configurations_gave():
    factors = {
        factor.name: factor for factor in rules.factors(recorded("live_mlp", baseline="nw4-pin0-nb0", facts=GPU))
    }
    assert factors["sample size"].measured.endswith(
        "Copy and step alone, on ready batches: pinned 2.66 × (1.96–3.61) over pageable."
    )
    assert "Training reaches 13 % of its compute ceiling." in factors["GPU use"].measured
    assert factors["workers"].measured.endswith("The loader alone delivers 2.19 × (1.68–2.85) what training takes.")
    assert factors["non_blocking"].measured.endswith(
        "Copy and step alone, on ready pinned batches: 1.09 × (1.01–1.18) without the wait."
    )
