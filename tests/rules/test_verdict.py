"""The sentence on top, one case a row of the report's design."""

import dataclasses

import msgspec
import pytest

from pindiag import rules
from pindiag.model import Safety

from .build import inputs
from .recorded import recorded
from .test_judge import ARTICLE, ENCODER_ON_THE_CPU

BUSY = {"wait_share": 0.62, "wait_cpu_share": 0.97, "usable_cpus": 8}
FASTER = {"nw4-pin0": {"ratio": 2.4, "ci": [2.1, 2.7]}}
CASES = {
    "confirmed": (
        {"facts_": BUSY, "trials": FASTER, "recommend": "nw4-pin0", "verified": (2.3, 2.2, 2.4)},
        "Preparing batches on the CPU is the limit: 1\u202f000 samples/s.",
        "Set `num_workers=4` at train.py:14: 2.30 × faster (95 % interval 2.20–2.40, verified by 4 pairs of fresh "
        "launches).",
        ("cpu_bound", "confirmed"),
    ),
    "confirmed, with epoch times, provisional": (
        {
            "facts_": BUSY,
            "trials": {"nw4-pin0": {"ratio": 2.4, "ci": [2.1, 2.7], "rounds": 4}},
            "recommend": "nw4-pin0",
            "firmness": "provisional",
            "epochs": {"nw0-pin0": 96.0, "nw4-pin0": 41.0},
        },
        "Preparing batches on the CPU is the limit: 1\u202f000 samples/s.",
        "Set `num_workers=4` at train.py:14: 2.40 × faster (95 % interval 2.10–2.70, an epoch in 41 s instead of "
        "1.6 min, provisional: 4 rounds; pindiag asks for 6).",
        ("cpu_bound", "confirmed"),
    ),
    "several": (
        ARTICLE,
        "The hand-off from the workers and the copy from pageable memory hold training back: 1\u202f000 samples/s.",
        "Set `num_workers=0, pin_memory=True` at train.py:14: 1.54 × faster (95 % interval 1.46–1.62, verified by 4 "
        "pairs of fresh launches). Mending the copy from pageable memory alone brings 1.17 × "
        "(`pin_memory=True`).",
        ("worker_ipc_bound", "confirmed"),
    ),
    "suspected": (
        {"facts_": BUSY},
        "Probably preparing batches on the CPU is the limit; not shown yet.",
        "The loop waits 62 % of each step for its batch; the training process is at work 100 % of the time, 97 % of it "
        "on a CPU. No experiment has shown it yet; a run with more workers, or on batches that are ready, would "
        "settle it.",
        ("cpu_bound", "suspected"),
    ),
    "suspected cause, measured gain": (
        {
            "baseline": "nw2-pin0",
            "facts_": {"wait_share": 0.5, "worker_busy_share": 0.9, "worker_fetch_cpu_share": 0.9},
            "trials": {"nw4-pin1": {"ratio": 1.5, "ci": [1.4, 1.6]}},
            "recommend": "nw4-pin1",
        },
        "Set `num_workers=4, pin_memory=True` at train.py:14: 1.50 × faster.",
        "95 % interval 1.40–1.60, measured. Why: probably preparing batches on the CPU; not shown yet.",
        ("cpu_bound", "suspected"),
    ),
    "suspected cause, measured gain, epoch times": (
        {
            "baseline": "nw2-pin0",
            "facts_": {"wait_share": 0.5, "worker_busy_share": 0.9, "worker_fetch_cpu_share": 0.9},
            "trials": {"nw4-pin1": {"ratio": 1.5, "ci": [1.4, 1.6]}},
            "recommend": "nw4-pin1",
            "epochs": {"nw2-pin0": 90.0, "nw4-pin1": 60.5},
        },
        "Set `num_workers=4, pin_memory=True` at train.py:14: 1.50 × faster.",
        "95 % interval 1.40–1.60, measured. An epoch in 1.0 min instead of 1.5 min. Why: probably preparing batches on "
        "the CPU; not shown yet.",
        ("cpu_bound", "suspected"),
    ),
    "no difference": (
        {"facts_": {"wait_share": 0.01}, "trials": {"nw2-pin0": {"ci": [0.98, 1.02]}, "nw4-pin0": {"ci": [0.9, 1.0]}}},
        "Keep what you have.",
        "None of the 2 other configurations that were tried differs from it beyond the noise (2.0 %). Of the 2 other "
        "configurations the fastest, nw2-pin0, ran 1.00 × (0.98–1.02) as fast as written.",
        ("no_difference", "confirmed"),
    ),
    "no sweep": (
        {"facts_": {"wait_share": 0.01}},
        "The script trains at 1\u202f000 samples/s.",
        "Waiting for batches and copying them take 1.0 % of each step: without both, 1.01 × at most. `--sweep` tries "
        "other configurations.",
        ("compute_bound", "suspected"),
    ),
    "a sweep without time": (
        {"facts_": {"wait_share": 0.01}, "trials": {"nw2-pin0": {"status": "skipped"}}},
        "The script trains at 1\u202f000 samples/s.",
        "Waiting for batches and copying them take 1.0 % of each step: without both, 1.01 × at most. No other "
        "configuration could be measured: it failed.",
        ("compute_bound", "suspected"),
    ),
    "nothing settled": (
        {"facts_": {"wait_share": 0.5}, "trials": {"nw2-pin0": {"ci": [0.8, 1.2]}}},
        "No configuration is shown to be faster than what you have.",
        "The other configuration, nw2-pin0, ran 1.00 × (0.80–1.20) as fast as written. The intervals are too wide to "
        "exclude a gain of 5 %.",
        ("no_difference", "none"),
    ),
    "too few rounds": (
        {"facts_": {"wait_share": 0.07}, "trials": {"nw2-pin0": {"ratio": 1.6, "rounds": 1}}},
        "No configuration is shown to be faster than what you have.",
        "Waiting for batches and copying them take 7.0 % of each step: without both, 1.08 × at most.",
        ("compute_bound", "suspected"),
    ),
    "failed": (
        {"target": {"status": "failed", "exit": "exit status 1", "error": "Trace\nValueError: no\n", "error_step": 30}},
        "Your script stopped at step 30: ValueError: no.",
        "Measured until then: 1\u202f000 samples/s. No verdict on speed.",
        ("script_error", "confirmed"),
    ),
    "a worker died": (
        {
            "facts_": {"target_failure": "worker_died", "worker_death": "SIGSEGV", "start_method": "spawn"},
            "target": {"status": "failed", "exit": "exit status 1", "error": "OSError: reset", "error_step": 43},
        },
        "A loader worker died at step 43: SIGSEGV.",
        "A worker died of SIGSEGV, so native code in it broke. What it was is not shown. Run it with num_workers=0 "
        "under `python -X faulthandler`: the crash then names the line of Python that called the native code. If it "
        "does not crash there, try multiprocessing_context='spawn'. Measured until then: 1\u202f000 samples/s. No "
        "verdict on speed.",
        ("worker_crash", "confirmed"),
    ),
    "a worker died after something was measured": (
        {"facts_": {"wait_share": 0.01, "worker_deaths_as_written": 1}},
        "A loader worker died while it was measured; whether the script does so alone is open.",
        "In 1 launch a worker died while the script's own configuration ran, after something had been measured; other "
        "treatments may have run before in it.",
        ("worker_crash", "suspected"),
    ),
    "interrupted": (
        {"facts_": BUSY, "trials": FASTER, "target": {"status": "interrupted"}, "rounds": 3},
        "Interrupted after 3 rounds.",
        "So far nw4-pin0 leads by 2.40 × (2.10–2.70); not a verdict.",
        ("cpu_bound", "none"),
    ),
    "pinned without accelerator": (
        {
            "facts_": {"wait_share": 0.01, "pin_asked": True, "accelerator_present": False},
            "trials": {"nw2-pin0": {"ci": [0.98, 1.02]}},
        },
        "No accelerator here, so pinning does nothing.",
        "Remove `pin_memory=True` at train.py:14, or guard it. The loader: Keep what you have. The other configuration "
        "that was tried does not differ from it beyond the noise (2.0 %). The other configuration, nw2-pin0, ran "
        "1.00 × (0.98–1.02) as fast as written.",
        ("pin_without_accelerator", "confirmed"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    given, headline, lead, (cause, confidence) = CASES[name]
    made = inputs(**given)
    verdict = rules.verdict(rules.judge(made), made)
    assert verdict.headline == headline
    assert verdict.lead == lead
    assert (verdict.primary_cause, verdict.confidence) == (cause, confidence)
    assert len(verdict.headline.split()) <= 24


def gated(given, **safety):
    """The same inputs, with what the safety gate said of some trials."""
    made = inputs(**given)
    trials = [msgspec.structs.replace(one, safety=safety.get(one.id.replace("-", "_"))) for one in made.trials]
    return dataclasses.replace(made, trials=trials)


UNSAFE = Safety(status="failed", reason="Workers would share an open file.")
PASSED = Safety(status="passed", reason="8 batches are bit for bit those of the script as written.")


def test_an_unsafe_change_is_named_and_not_recommended():
    made = gated({"facts_": BUSY, "trials": FASTER}, nw4_pin0=UNSAFE)
    findings = rules.judge(made)
    verdict = rules.verdict(findings, made)
    assert verdict.headline == "`num_workers=4` was 2.40 × (2.10–2.70) faster and is not recommended."
    assert verdict.lead == "Workers would share an open file."
    assert [fix.safety for fix in findings[0].fixes] == [UNSAFE]


def test_a_safe_change_stands_in_for_an_unsafe_one():
    trials = {"nw8-pin0": {"ratio": 2.4, "ci": [2.1, 2.7]}, "nw2-pin0": {"ratio": 1.8, "ci": [1.7, 1.9]}}
    given = {"facts_": BUSY, "trials": trials, "recommend": "nw2-pin0"}
    made = gated(given, nw8_pin0=UNSAFE, nw2_pin0=PASSED)
    findings = rules.judge(made)
    verdict = rules.verdict(findings, made)
    assert verdict.headline.startswith("Preparing batches on the CPU is the limit")
    assert ("num_workers=2" in verdict.lead, "num_workers=8" in verdict.lead) == (True, False)
    assert [fix.safety for fix in findings[0].fixes] == [PASSED]


def test_nothing_measured_names_no_cause():
    made = rules.Inputs()
    assert rules.verdict(rules.judge(made), made).primary_cause is None


def test_a_long_error_is_cut_to_the_length_of_a_headline():
    error = "ValueError: " + "word " * 50
    made = inputs(target={"status": "failed", "exit": "exit status 1", "error": error, "error_step": 3})
    assert len(rules.verdict(rules.judge(made), made).headline.split()) <= 24


# ---------------------------------------------------------------------------------------------------- with ceilings

MAKERS = {"accelerator_present": False, "wait_share": 0.67, "wait_cpu_share": 0.99}
CEILINGS = {
    "the pin thread, as written unpinned": (
        recorded("live_mlp", baseline="nw4-pin0-nb0", facts={"worker_busy_share": 0.5, "worker_fetch_cpu_share": 0.9}),
        "The pin thread and the copy from pageable memory hold training back: as written, unpinned, "
        "3\u202f240 samples/s "
        "of a possible 25\u202f900.",
        "Set `num_workers=0, pin_memory=True, non_blocking=True`: 1.43 × faster (95 % interval 1.11–1.85, provisional: "
        "4 rounds; pindiag asks for 6).",
        "With a perfect loader this script would run 2.06 × faster; with perfect copies as well, 3.87 × "
        "faster than that.",
    ),
    "the pin thread alone, as written unpinned": (
        inputs(
            baseline="nw4-pin0-nb1",
            facts_={"accelerator_present": True, "wait_share": 0.5, "transfer_share": 0.01, "transfer_ms": 0.1},
            trials={
                "nw4-pin1-nb1": {"ratio": 1.1, "ci": [1.08, 1.12]},
                "nw0-pin1-nb1": {"ratio": 1.5, "ci": [1.47, 1.53]},
                "loader_only-nw4-pin0": {"ratio": 3.0, "ci": [2.9, 3.1]},
                "loader_only-nw4-pin1": {"ratio": 1.12, "ci": [1.1, 1.14]},
                "compute_only": {"ratio": 8.0, "ci": [7.8, 8.2]},
            },
            recommend="nw0-pin1-nb1",
        ),
        "The pin thread is the limit: with workers at most 1\u202f120 samples/s of a possible 8\u202f000; as "
        "written, unpinned, "
        "1\u202f000.",
        "Set `num_workers=0, pin_memory=True` at train.py:14: 1.50 × faster (95 % interval 1.47–1.53, measured).",
        "With a perfect loader and perfect copies this script would run 8.00 × faster.",
    ),
    "its own computing": (
        recorded("live_rn", baseline="nw4-pin1-nb1"),
        "Keep what you have.",
        "None of the 11 other configurations that were tried differs from it beyond the noise. Training "
        "reaches 96 % of "
        "the ceiling of its own computing.",
        "With a perfect loader this script would run no faster (1.00 ×); with perfect copies as well, 1.03 × "
        "faster than "
        "that.",
    ),
    "a cause that no argument removes": (
        inputs(
            facts_=MAKERS, trials={"compute_only": {"ratio": 5.7, "ci": [5.4, 6.0]}, "nw2-pin0": {"ci": [0.9, 1.0]}}
        ),
        "Preparing batches on the CPU is the limit: 1\u202f000 samples/s of a possible 5\u202f700.",
        "Make a sample cheaper: smaller images, a faster decoder, transforms on the GPU, results kept on disk. At most "
        "5.70 × faster; not tried.",
        "With a perfect loader this script would run 5.70 × faster.",
    ),
    "threads lost": (
        inputs(**ENCODER_ON_THE_CPU),
        "CPU work on too few threads is the limit: 1\u202f000 samples/s.",
        "Set `pin_memory=False` at train.py:14: 3.20 × faster (95 % interval 2.90–3.50, verified by 4 pairs of fresh "
        "launches). Mending CPU work on too few threads alone brings 3.96 × (add "
        "`torch.set_num_threads(torch.get_num_threads())` before the loader is first iterated).",
        "With a perfect loader this script would run 1.01 × faster; with perfect copies as well, 1.01 × "
        "faster than that.",
    ),
}


@pytest.mark.parametrize("name", CEILINGS)
def test_ceilings_name_the_limit_and_what_is_possible(name):
    made, headline, lead, possible = CEILINGS[name]
    verdict = rules.verdict(rules.judge(made), made)
    assert verdict.headline == headline
    assert verdict.lead == lead
    assert verdict.possible == possible
    assert len(verdict.headline.split()) <= 24


def test_every_headline_that_blames_two_stages_of_an_unpinned_script_is_short():
    made = CEILINGS["the pin thread, as written unpinned"][0]
    first, *others = rules.judge(made)
    for rule in rules.catalogue():
        second = msgspec.structs.replace(first, cause=rule.name)
        assert len(rules.verdict([first, second, *others], made).headline.split()) <= 24, rule.name


@pytest.mark.parametrize(
    ("live", "said"),
    [
        (
            (3.0, 2.8, 3.2),
            "Live and fresh runs disagree: live 3.00 × (2.80–3.20), fresh 2.30 × (2.20–2.40); the fresh result "
            "decides. "
            "Set `num_workers=4`",
        ),
        ((2.45, 2.3, 2.6), "fresh launches). Live it was 2.45 × (2.30–2.60), which the fresh interval does not hold."),
    ],
)
def test_what_live_runs_said_otherwise_is_said(live, said):
    made = inputs(**CASES["confirmed"][0], live=live)
    assert said in rules.verdict(rules.judge(made), made).lead


def test_where_live_and_fresh_agree_nothing_is_said():
    made = inputs(**CASES["confirmed"][0])
    assert "ive" not in rules.verdict(rules.judge(made), made).lead.replace("verified", "")


def test_epochs_that_were_verified_whole_are_told_as_they_were():
    given = {**CASES["confirmed"][0], "facts_": {**BUSY, "batch_samples": 64}, "epochs": {"nw0-pin0": 9, "nw4-pin0": 4}}
    reckoned = inputs(**given)
    whole = msgspec.structs.replace(reckoned.verification, epochs=2)
    measured = dataclasses.replace(reckoned, verification=whole)
    leads = [rules.verdict(rules.judge(made), made).lead for made in (reckoned, measured)]
    assert "an epoch in 4.0 s instead of 9.0 s" in leads[0]
    assert "an epoch in 2.8 s instead of 6.4 s" in leads[1]


@pytest.mark.parametrize(("ratio", "said"), [(2.4, " of a possible 2\u202f500."), (2.7, ".")])
def test_what_ran_well_above_a_ceiling_shows_that_it_is_none(ratio, said):
    trials = {"nw4-pin0": {"ratio": ratio, "ci": [2.1, 2.9]}, "compute_only": {"ratio": 2.5, "ci": [2.0, 3.1]}}
    made = inputs(facts_=BUSY, trials=trials, recommend="nw4-pin0")
    headline = rules.verdict(rules.judge(made), made).headline
    assert headline == f"Preparing batches on the CPU is the limit: 1\u202f000 samples/s{said}"
