"""What samples/truth.toml says must never be confirmed is not, whatever the shares of time that were measured with it.

Throughputs are those of truth.toml's comments, with intervals of 4 % either way. What the code of a sample settles by
itself is given (decoding and augmenting run on a CPU); all other shares take any value.
"""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pindiag import rules
from tests.toml import read_toml

from .build import inputs

TRUTH = read_toml(Path(__file__).parents[2] / "samples" / "truth.toml")
SHARE = st.floats(0, 1)
ANY = dict.fromkeys(
    ("wait_share", "transfer_share", "worker_busy_share", "run_delay_share", "target_cpu_share", "main_cpu_share"),
    SHARE,
) | {"batch_bytes": st.just(38_535_168), "step_ms": st.just(20.0)}
ON_A_CPU = {"worker_fetch_cpu_share": st.floats(0.6, 1), "wait_cpu_share": st.floats(0.6, 1)}
DRAINED = st.floats(1, 4)
"""Over training: a loader alone is never slower."""


def near(ratio):
    return {"ratio": ratio, "ci": [ratio / 1.04, ratio * 1.04]}


CPU = {"accelerator_present": st.just(False)}
GPU = {"accelerator_present": st.just(True), "transfer_ms": st.just(8.5)}
CASES = {
    "article_floats.cpu": (
        "nw4-pin0",
        {**CPU, **ON_A_CPU},
        {"nw2-pin0": 1912 / 1824, "nw1-pin0": 1872 / 1824, "nw0-pin0": 3246 / 1824, "compute_only": 7101 / 1824},
    ),
    "augment_resnet.cpu": (
        "nw2-pin0",
        {**CPU, **ON_A_CPU},
        {"nw4-pin0": 1.0, "nw1-pin0": 871 / 800, "nw0-pin0": 1195 / 800, "compute_only": 2686 / 800},
    ),
    "jpeg_folder.cpu": (
        "nw0-pin0",
        {**CPU, **ON_A_CPU},
        {"nw1-pin0": 607 / 735, "nw2-pin0": 651 / 735, "nw4-pin0": 606 / 735, "compute_only": 4205 / 735},
    ),
    "tabular_rows.cpu": (
        "nw4-pin0",
        {**CPU, **ON_A_CPU},
        {"nw2-pin0": 12087 / 8585, "nw1-pin0": 11909 / 8585, "nw0-pin0": 14590 / 8585, "compute_only": 24301 / 8585},
    ),
    "article_floats.cuda": (
        "nw4-pin0-nb0",
        {**GPU, **ON_A_CPU},
        {
            "nw4-pin1-nb1": 1.17,
            "nw8-pin1-nb1": 1.12,
            "nw0-pin1-nb1": 1.6,
            "compute_only": 27251 / 3484,
            "host_batch-pin0-nb0": 2.06,
            "host_batch-pin1-nb1": 5.5,
            "loader_only-nw4-pin1": 1.2,
        },
    ),
}


def measured(name):
    baseline, shares, ratios = CASES[name]
    facts = st.fixed_dictionaries({**ANY, **shares})
    trial_facts = {"nw4-pin1-nb1": {"transfer_ms": 0.1}, "nw0-pin1-nb1": {"transfer_ms": 0.1}}

    def run(known, drained):
        alone = f"loader_only-{baseline.partition('-')[0]}-pin0"
        trials = {trial: near(ratio) for trial, ratio in {**ratios, alone: drained}.items()}
        return inputs(baseline=baseline, facts_=known, trials=trials, trial_facts=trial_facts)

    return st.builds(run, facts, DRAINED)


@pytest.mark.parametrize("name", CASES)
def test_never_confirmed(name):
    sample, _, device = name.partition(".")
    truth = TRUTH[sample][device]

    @settings(max_examples=150, deadline=None)
    @given(measured(name))
    def holds(run):
        findings = rules.judge(run)
        confirmed = {finding.cause for finding in findings if finding.status == "confirmed"}
        assert not confirmed & set(truth["never"])
        assert rules.primary(findings) is not None

    holds()


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("article_floats.cpu", {"wait_share": 0.6, "worker_busy_share": 0.4}),
        (
            "augment_resnet.cpu",
            {"wait_share": 0.6, "worker_busy_share": 0.97, "target_cpu_share": 0.97, "run_delay_share": 0.4},
        ),
        ("jpeg_folder.cpu", {"wait_share": 0.67}),
        ("tabular_rows.cpu", {"wait_share": 0.6, "worker_busy_share": 0.2, "target_cpu_share": 0.7}),
        ("article_floats.cuda", {"wait_share": 0.43, "transfer_share": 0.44, "worker_busy_share": 0.5}),
    ],
)
def test_what_it_is(name, shares):
    sample, _, device = name.partition(".")
    baseline, known, ratios = CASES[name]
    facts = {
        "accelerator_present": device == "cuda",
        "transfer_ms": 8.5,
        "step_ms": 20.0,
        "batch_bytes": 38_535_168,
        "worker_fetch_cpu_share": 0.9,
        "wait_cpu_share": 0.9,
        **shares,
    }
    alone = f"loader_only-{baseline.partition('-')[0]}-pin0"
    trials = {trial: near(ratio) for trial, ratio in {**ratios, alone: 2.2}.items()}
    trial_facts = {"nw4-pin1-nb1": {"transfer_ms": 0.1}, "nw0-pin1-nb1": {"transfer_ms": 0.1}}
    first = rules.primary(rules.judge(inputs(baseline=baseline, facts_=facts, trials=trials, trial_facts=trial_facts)))
    assert first.status == "confirmed"
    assert first.cause in TRUTH[sample][device]["accept"]
