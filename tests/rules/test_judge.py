"""What rules say together: consequences, the primary cause, and nothing without its experiment."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pindiag import rules
from pindiag.model import Ratio
from pindiag.rules import engine
from pindiag.rules.rule import Rule

from .build import RUN_LEVEL, configuration, inputs
from .recorded import recorded

FACTS_OF_THEIR_OWN = {each.name for each in rules.catalogue() if each.of_fact}
ARTICLE = {
    "baseline": "nw4-pin0-nb1",
    "facts_": {
        "accelerator_present": True,
        "wait_share": 0.5,
        "transfer_share": 0.46,
        "transfer_ms": 8.5,
        "worker_busy_share": 0.5,
        "worker_fetch_cpu_share": 0.9,
        "batch_bytes": 38535168,
        "step_ms": 18.4,
    },
    "trials": {
        "nw4-pin1-nb1": {"ratio": 1.17, "ci": [1.12, 1.22]},
        "nw8-pin0-nb1": {"ratio": 1.0, "ci": [0.97, 1.03]},
        "nw0-pin1-nb1": {"ratio": 1.6, "ci": [1.5, 1.7]},
    },
    "trial_facts": {"nw4-pin1-nb1": {"transfer_ms": 0.1}, "nw0-pin1-nb1": {"transfer_ms": 0.1}},
    "recommend": "nw0-pin1-nb1",
    "verified": (1.54, 1.46, 1.62),
}


def by_cause(findings):
    return {finding.cause: finding for finding in findings}


def test_two_causes_each_by_its_own_experiment_and_the_stronger_first():
    findings = rules.judge(inputs(**ARTICLE))
    found = by_cause(findings)
    assert found["worker_ipc_bound"].status == "confirmed"
    assert found["pageable_copy"].status == "confirmed"
    assert found["cpu_bound"].status == "ruled_out"
    assert found["pin_thread_bound"].status == "not_applicable"
    assert rules.primary(findings).cause == "worker_ipc_bound"
    fix = found["worker_ipc_bound"].fixes[0]
    assert fix.changes == {"num_workers": 0, "pin_memory": True}
    assert (fix.effect.kind, fix.effect.ratio) == ("verified", 1.54)


def test_one_change_confirms_one_cause_and_the_other_hangs_under_it():
    findings = rules.judge(
        inputs(
            baseline="nw4-pin1-nb1",
            facts_={
                "accelerator_present": True,
                "wait_share": 0.8,
                "pin_busy_share": 0.97,
                "worker_busy_share": 0.3,
                "worker_fetch_cpu_share": 0.9,
            },
            trials={"nw0-pin1-nb1": {"ratio": 1.4, "ci": [1.3, 1.5]}},
        )
    )
    found = by_cause(findings)
    assert found["pin_thread_bound"].status == "confirmed"
    assert found["worker_ipc_bound"].consequence_of == "pin_thread_bound"
    assert rules.primary(findings).cause == "pin_thread_bound"


def test_making_pinned_buffers_owns_the_busy_pin_thread():
    findings = rules.judge(
        inputs(
            baseline="nw4-pin1-nb1",
            facts_={
                "accelerator_present": True,
                "wait_share": 0.8,
                "pin_busy_share": 0.97,
                "host_alloc_ms_per_step": 9.0,
                "step_ms": 20.0,
            },
            trials={"nw4-pin0-nb1": {"ratio": 1.4, "ci": [1.3, 1.5]}},
        )
    )
    found = by_cause(findings)
    assert found["pinned_alloc"].consequence_of is None
    assert found["pin_thread_bound"].consequence_of == "pinned_alloc"


def test_a_verification_that_does_not_bear_the_leader_out_confirms_nothing():
    findings = rules.judge(inputs(**{**ARTICLE, "verified": (1.02, 0.95, 1.09)}))
    assert by_cause(findings)["worker_ipc_bound"].status != "confirmed"


def test_what_fresh_pairs_did_not_bear_out_confirms_nothing_although_another_is_recommended():
    made = inputs(**{**ARTICLE, "verified": (1.02, 0.95, 1.09)})
    kept = msgspec.structs.replace(made.recommendation, trial=made.baseline)
    pair = msgspec.structs.replace(made.blocks[0], trial="nw0-pin1-nb1", purpose="verify")
    found = by_cause(rules.judge(replace(made, recommendation=kept, blocks=[*made.blocks, pair])))
    assert found["worker_ipc_bound"].status != "confirmed"


@pytest.mark.parametrize(
    ("given_", "cause"),
    [
        ({"target": {"status": "failed", "exit": "exit status 1"}, **ARTICLE}, "script_error"),
        ({"facts_": {"wait_share": 0.01}, "trials": {"nw2-pin0": {"ci": [0.98, 1.02]}}}, "no_difference"),
        ({"facts_": {"wait_share": 0.01}}, "compute_bound"),
        ({"facts_": {"wait_share": 0.01, "pin_asked": True, "accelerator_present": False}}, "pin_without_accelerator"),
        ({"facts_": {"wait_share": 0.5, "wait_cpu_share": 0.9}}, "cpu_bound"),
        (
            {"facts_": {"wait_share": 0.5, "wait_cpu_share": 0.9, "pin_asked": True, "accelerator_present": False}},
            "pin_without_accelerator",
        ),
        ({"facts_": {"wait_share": 0.5}, "trials": {"nw2-pin0": {"ci": [0.8, 1.2]}}}, "no_difference"),
    ],
)
def test_primary(given_, cause):
    assert rules.primary(rules.judge(inputs(**given_))).cause == cause


def test_a_confirmed_cause_outranks_a_finding_of_fact():
    findings = rules.judge(
        inputs(
            facts_={"wait_share": 0.5, "wait_cpu_share": 0.9, "pin_asked": True, "accelerator_present": False},
            trials={"nw2-pin0": {"ratio": 1.5, "ci": [1.4, 1.6]}},
        )
    )
    assert rules.primary(findings).cause == "cpu_bound"


HELD_DOWN = {"accelerator_present": True, "nvml_slowed_share": 0.9, "nvml_sm_clock_share": 0.5, "wait_share": 0.01}
UNWORTHY = {"nw2-pin0": {"ci": [0.98, 1.02]}}


@pytest.mark.parametrize(("held", "cause"), [(0.9, "gpu_throttled"), (0.0, "no_difference")])
def test_a_grave_fact_is_the_verdict_where_no_cause_is_and_a_slight_one_stands_beside_it(held, cause):
    made = inputs(facts_={**HELD_DOWN, "nvml_held_back_share": held}, trials=UNWORTHY)
    findings = rules.judge(made)
    verdict = rules.verdict(findings, made)
    assert by_cause(findings)["gpu_throttled"].status == "confirmed"
    assert (rules.primary(findings).cause, verdict.primary_cause) == (cause, cause)
    assert ("clocks were held down" in verdict.headline) is (cause == "gpu_throttled")


CPU = {"accelerator_present": False, "wait_share": 0.67, "wait_cpu_share": 0.99}
MADE_IN_THE_LOOP = {"compute_only": {"ratio": 5.7, "ci": [5.4, 6.0]}}


def order(**given):
    return [each.cause for each in rules.judge(inputs(**given)) if each.status == "confirmed"]


def test_a_ceiling_stands_first_only_where_more_is_left_of_it_than_the_other_has_brought():
    allocated = {"pin_busy_share": 0.0, "host_alloc_ms_per_step": 5.0, "step_ms": 20.0, "accelerator_present": True}
    given = {"baseline": "nw0-pin1-nb1", "facts_": {**CPU, **allocated}}
    ready = {"host_batch-pin1-nb1": {"ratio": 4.0, "ci": [3.8, 4.2]}}
    small = {"nw0-pin0-nb1": {"ratio": 1.1, "ci": [1.07, 1.13]}}
    large = {"nw0-pin0-nb1": {"ratio": 2.5, "ci": [2.4, 2.6]}}
    assert order(**given, trials={**ready, **small}) == ["cpu_bound", "pinned_alloc"]
    assert order(**given, trials={**ready, **large}) == ["pinned_alloc", "cpu_bound"]


def test_what_a_ceiling_bounds_is_predicted_and_what_was_tried_in_vain_is_not_proposed():
    finding = rules.judge(
        inputs(
            facts_={**CPU, "usable_cpus": 8},
            trials={**MADE_IN_THE_LOOP, "nw4-pin0": {"ratio": 0.9, "ci": [0.85, 0.95]}},
        )
    )[0]
    assert (finding.cause, finding.status) == ("cpu_bound", "confirmed")
    assert [(fix.changes, fix.effect.kind) for fix in finding.fixes] == [({}, "predicted")]


def test_where_effects_cannot_be_told_apart_the_stage_as_slow_as_training_goes_first():
    given = {"worker_busy_share": 0.5, "worker_fetch_cpu_share": 0.9}
    findings = rules.judge(recorded("live_mlp", baseline="nw4-pin0-nb0", facts=given))
    first, second = findings[:2]
    assert (first.cause, second.cause) == ("pin_thread_bound", "pageable_copy")
    assert by_cause(findings)["worker_ipc_bound"].consequence_of == "pin_thread_bound"


def test_what_nothing_but_an_experiment_can_weigh_is_never_the_primary_cause():
    facts = {
        "accelerator_present": True,
        "wait_share": 0.01,
        "syncs_per_step": 2.0,
        "intraop_threads_pin_thread": 1,
        "intraop_threads_no_pin_thread": 16,
    }
    findings = rules.judge(inputs(baseline="nw2-pin1-nb1", facts_=facts, trials={"nw4-pin1-nb1": {"ci": [0.98, 1.02]}}))
    found = by_cause(findings)
    assert found["sync_defeats_overlap"].status == found["intraop_threads_lost"].status == "suspected"
    assert found["no_difference"].status == "confirmed"
    assert rules.primary(findings).cause == "no_difference"


MANY_THREADS = {
    "baseline": "nw2-pin0",
    "facts_": {
        "accelerator_present": False,
        "wait_share": 0.36,
        "worker_busy_share": 0.7,
        "worker_fetch_cpu_share": 0.96,
        "usable_cpus": 2,
        "worker_threads": 4,
        "intraop_threads": 2,
        "run_delay_share": 0.58,
    },
}


@pytest.mark.parametrize(
    ("tried", "first"),
    [
        ({"ratio": 15.2, "rounds": 1}, "native_threads_in_workers"),
        ({"ratio": 1.15, "rounds": 1}, "worker_ipc_bound"),
        ({"ratio": 15.2, "ci": [0.8, 280.0], "rounds": 2}, "worker_ipc_bound"),
        (None, "worker_ipc_bound"),
    ],
)
def test_it_may_be_once_the_experiment_gained_and_it_ranks_by_that(tried, first):
    """As on two cores, where products in workers have as many threads as there are cores."""
    trials = {"nw0-pin0": {"ratio": 1.98, "rounds": 1}} | ({"nw2-pin0+worker_threads": tried} if tried else {})
    assert rules.primary(rules.judge(inputs(**MANY_THREADS, trials=trials))).cause == first


@pytest.mark.parametrize(
    ("wait", "trials", "first"),
    [
        (0.08, {"nw0-pin0": {"ratio": 1.15, "ci": [0.93, 1.43]}}, "compute_bound"),
        (0.08, {}, "compute_bound"),
        (0.08, {"nw0-pin0": {"ratio": 1.15, "ci": [1.02, 1.3]}}, "worker_ipc_bound"),
        (0.4, {"nw0-pin0": {"ratio": 1.15, "ci": [0.93, 1.43]}}, "worker_ipc_bound"),
    ],
)
def test_what_neither_facts_nor_a_trial_speak_for_stands_behind_the_step(wait, trials, first):
    facts_ = {"wait_share": wait, "worker_busy_share": 0.09, "worker_fetch_cpu_share": 1.0, "run_delay_share": 0.1}
    replayed = {"compute_only": {"ratio": 1.22, "ci": [1.04, 1.43]}}
    findings = rules.judge(inputs(baseline="nw1-pin0", facts_=facts_, trials={**trials, **replayed}))
    assert rules.primary(findings).cause == first


ENCODER_ON_THE_CPU = {
    "baseline": "nw2-pin1-nb0",
    "facts_": {
        "accelerator_present": True,
        "wait_share": 0.01,
        "transfer_share": 0.01,
        "pin_busy_share": 0.3,
        "worker_busy_share": 0.1,
        "worker_fetch_cpu_share": 0.9,
        "intraop_threads_pin_thread": 1,
        "intraop_threads_no_pin_thread": 16,
        "intraop_threads": 1,
    },
    "trials": {
        "nw2-pin0-nb0": {"ratio": 3.3, "ci": [2.6, 4.2]},
        "nw0-pin0-nb0": {"ratio": 2.9, "ci": [2.3, 3.7]},
        "nw2-pin1-nb0+intraop_threads": {"ratio": 3.96, "ci": [3.3, 4.75]},
        "compute_only": {"ratio": 1.02, "ci": [0.98, 1.06]},
        "host_batch-pin1-nb0": {"ratio": 1.01, "ci": [0.98, 1.04]},
        "loader_only-nw2-pin0": {"ratio": 30.0, "ci": [25, 36]},
        "loader_only-nw2-pin1": {"ratio": 12.0, "ci": [10, 14]},
    },
    "recommend": "nw2-pin0-nb0",
    "verified": (3.2, 2.9, 3.5),
}


def test_threads_lost_are_the_cause_although_no_pinning_was_faster_too():
    assert order(**ENCODER_ON_THE_CPU) == ["intraop_threads_lost"]


def test_what_goes_without_a_pin_thread_gets_no_credit_for_the_threads_it_leaves():
    waits = {**ENCODER_ON_THE_CPU["facts_"], "wait_share": 0.2, "pin_busy_share": 0.9}
    for trials in ({}, {"nw0-pin1-nb0": {"ratio": 3.0, "ci": [2.4, 3.8]}}):
        given = {**ENCODER_ON_THE_CPU, "facts_": waits, "trials": {**ENCODER_ON_THE_CPU["trials"], **trials}}
        ready = {"host_batch-pin1-nb0": {"ratio": 1.3, "ci": [1.25, 1.35]}}
        assert order(**{**given, "trials": {**given["trials"], **ready}}) == ["intraop_threads_lost"]


def test_a_tweak_that_shows_nothing_takes_no_ones_place():
    waits = {**ENCODER_ON_THE_CPU["facts_"], "wait_share": 0.2}
    trials = {
        "nw0-pin1-nb0": {"ratio": 1.5, "ci": [1.4, 1.6]},
        "nw2-pin1-nb0+intraop_threads": {"ratio": 1.0, "ci": [0.5, 2.0]},
    }
    assert order(baseline="nw2-pin1-nb0", facts_=waits, trials=trials) == ["worker_ipc_bound"]


def test_a_smaller_cause_keeps_no_larger_one_under_it():
    facts = {
        "wait_share": 0.6,
        "worker_busy_share": 0.4,
        "worker_fetch_cpu_share": 0.9,
        "run_delay_share": 0.4,
        "target_cpu_share": 0.97,
    }
    trials = {"nw1-pin0": {"ratio": 1.09, "ci": [1.06, 1.12]}, "nw0-pin0": {"ratio": 1.5, "ci": [1.45, 1.55]}}
    found = by_cause(rules.judge(inputs(baseline="nw2-pin0", facts_=facts, trials=trials)))
    assert found["worker_contention"].status == found["worker_ipc_bound"].status == "confirmed"
    assert found["worker_ipc_bound"].consequence_of is None


STEPS = {
    "baseline": "nw4-pin0-nb0",
    "facts_": ARTICLE["facts_"],
    "trials": {
        "nw4-pin1-nb0": {"ratio": 1.1, "ci": [0.9, 1.3]},
        "nw0-pin1-nb0": {"ratio": 1.4, "ci": [1.1, 1.8]},
        "nw4-pin1-nb1": {"ratio": 1.1, "ci": [0.9, 1.3]},
        "nw0-pin1-nb1": {"ratio": 1.4, "ci": [1.1, 1.8]},
    },
}


@pytest.mark.parametrize(("p", "status"), [(0.01, "confirmed"), (0.03, "not_settled")])
def test_steps_between_trials_are_paired_and_corrected_for_their_number(p, status):
    pair = Ratio(ratio=1.27, ci95=(1.09, 1.48), rounds=4, p_corrected=p)
    made = replace(inputs(**STEPS), between=lambda trial, over: pair)
    assert by_cause(rules.judge(made))["worker_ipc_bound"].status == status


def test_fresh_pairs_decide_a_step_too():
    pair = Ratio(ratio=0.9, ci95=(0.8, 1.0), rounds=4, p_corrected=0.06)
    made = replace(inputs(**ARTICLE), between=lambda trial, over: pair)
    assert by_cause(rules.judge(made))["worker_ipc_bound"].status == "confirmed"


def test_a_change_that_pins_says_nothing_of_threads_that_cost_nothing():
    known = {"intraop_threads_pin_thread": 1, "intraop_threads_no_pin_thread": 16}
    nothing = {"nw4-pin1-nb1+intraop_threads": {"ratio": 1.17, "ci": [1.15, 1.19]}}
    given_ = {**ARTICLE, "facts_": {**ARTICLE["facts_"], **known}, "trials": {**ARTICLE["trials"], **nothing}}
    pair = Ratio(ratio=1.0, ci95=(0.98, 1.02), rounds=6, p_corrected=0.9)
    made = replace(inputs(**given_), between=lambda trial, over: pair if "intraop" in trial else None)
    trade_offs = [fix.trade_off or "" for finding in rules.judge(made) for fix in finding.fixes]
    assert any("cannot be swapped out" in each for each in trade_offs)
    assert not any("intra-op" in each for each in trade_offs)


def test_a_change_that_pins_says_what_its_thread_takes_away():
    known = {"intraop_threads_pin_thread": 1, "intraop_threads_no_pin_thread": 16}
    lost = inputs(**{**ARTICLE, "facts_": {**ARTICLE["facts_"], **known}})
    fixes = [fix for finding in rules.judge(lost) for fix in finding.fixes]
    with_thread = [fix for fix in fixes if fix.changes.get("pin_memory") and "num_workers" not in fix.changes]
    without = [fix for fix in fixes if fix.changes.get("num_workers") == 0]
    assert with_thread and all("1 of 16 intra-op threads" in fix.trade_off for fix in with_thread)
    assert without and all("intra-op" not in fix.trade_off for fix in without)


def test_a_change_that_pins_says_what_its_thread_lets_through_until_it_is_tried():
    drained = {
        "loader_only-nw4-pin0": {"ratio": 2.2, "ci": [2.1, 2.3]},
        "loader_only-nw4-pin1": {"ratio": 1.25, "ci": [1.2, 1.3]},
    }
    facts = {"accelerator_present": True, "transfer_share": 0.46, "transfer_ms": 8.5}
    untried = rules.judge(inputs(baseline="nw4-pin0-nb1", facts_=facts, trials=drained))
    (fix,) = by_cause(untried)["pageable_copy"].fixes
    assert "The pin thread delivers at most 1\u202f250 samples/s." in fix.trade_off


def test_a_rule_that_breaks_costs_only_itself():
    def broken(facts, options):
        raise ZeroDivisionError("by zero")

    rule = Rule(code="PD999", name="broken", title="-", limit="-", options={}, yields_to=(), check=broken)
    finding, *others = reversed(engine.judge(inputs(), [rule, *rules.catalogue()]))
    assert (finding.status, finding.reason) == ("error", "The rule failed: ZeroDivisionError: by zero")
    assert len(others) == len(rules.catalogue())


def test_nothing_measured_judges_nothing():
    findings = rules.judge(rules.Inputs())
    assert {finding.status for finding in findings} == {"not_applicable", "ruled_out"}


# ------------------------------------------------------------------------------------------------- any facts at all

NAMES = (
    sorted(RUN_LEVEL)
    + (
        "samples_per_second step_ms wait_ms transfer_ms wait_share transfer_share synchronise_share wait_cpu_share "
        "pin_receive_ms pin_pin_ms pin_idle_ms pin_busy_share host_allocations host_alloc_ms_per_step "
        "pinned_reserved_bytes pinned_reckoned_bytes worker_cpu_share worker_fetch_ms worker_collate_ms "
        "worker_fetch_cpu_share worker_busy_share target_cpu_share run_delay_share psi_memory_share gpu_busy_share "
        "nvml_utilization pss_bytes hand_pin_ms_per_step pin_in_main_thread batch_pinned transfer_pinned_share "
        "other_loader_epoch_wait_share other_loader_step_wait_share unsafe_copies pcie_gen pcie_width pcie_gen_max "
        "pcie_width_max pcie_rx_bytes_per_s numa_nodes gpu_numa_node gpu_local_cpus affinity_cpus nvml_held_back_share "
        "nvml_slowed_share nvml_sm_clock_share gpu_copy_ms torch_version python_version allocator_settings "
        "syncs_per_step sync_ms_per_step gpu_kernel_ms gpu_launches main_cpu_share loader_rebuilt loader_startup_share "
        "dataset_fetches_batches worker_contexts other_gpu_contexts clock_place clock_left_out_share "
        "clock_left_out_wait_ms clock_left_out_elsewhere_ms clock_synchronisations_per_step worker_hand_off_ms "
        "startup_s wait_longest_tenth_share dataset_objects worker_growth_bytes_per_batch worker_pss_bytes"
    ).split()
)
ANY_NUMBER = st.one_of(st.none(), st.booleans(), st.sampled_from([0, 1, -1, 0.5, 0.99]), st.integers(), st.floats())
ANY_FACTS = st.dictionaries(st.sampled_from(NAMES), ANY_NUMBER)
IDS = ["nw0-pin0-nb0", "nw4-pin0-nb0", "nw4-pin1-nb0", "nw4-pin1-nb1", "nw0-pin1-nb1", "nw8-pin1-nb1", "nw4-pin0"]
OTHERS = [
    "compute_only",
    *(f"host_batch-pin{pin}-nb{wait_free}" for pin in (0, 1) for wait_free in (0, 1)),
    *(f"loader_only-nw{workers}-pin{pin}" for workers in (0, 4) for pin in (0, 1)),
    *(f"{name}+{tweak}" for name in ("nw4-pin0-nb0", "nw4-pin1-nb1") for tweak in ("lazy_sync", "intraop_threads")),
]
ANY_TRIAL = st.fixed_dictionaries(
    {"ratio": st.floats(), "ci": st.one_of(st.none(), st.tuples(st.floats(), st.floats()))},
    optional={"rounds": st.integers(0, 8), "status": st.sampled_from(["measured", "failed", "skipped"])},
)


def made(baseline, facts_, trials, per_trial, recommend, floor, status):
    trials = {name: figures for name, figures in trials.items() if name != baseline}
    return inputs(
        baseline=baseline,
        facts_=facts_,
        trials=trials,
        trial_facts=dict.fromkeys(trials, per_trial),
        recommend=recommend if recommend in trials else None,
        floor=floor,
        target={"status": status},
    )


ANY_INPUTS = st.builds(
    made,
    st.sampled_from(IDS),
    ANY_FACTS,
    st.dictionaries(st.sampled_from(IDS + OTHERS), ANY_TRIAL),
    ANY_FACTS,
    st.sampled_from(IDS),
    st.one_of(st.none(), st.floats()),
    st.sampled_from(["ok", "failed", "interrupted"]),
)


@settings(max_examples=400)
@given(ANY_INPUTS)
def test_any_facts_give_findings_and_a_verdict(given_):
    findings = rules.judge(given_)
    assert [f.reason for f in findings if f.status == "error"] == []
    assert len(findings) == len(rules.catalogue())
    verdict = rules.verdict(findings, given_)
    assert 1 <= len(verdict.headline.replace("\u202f", "").split()) <= 24
    assert len(rules.factors(given_)) == 6
    msgspec.json.encode([findings, verdict])


@settings(max_examples=400)
@given(ANY_INPUTS)
def test_no_cause_of_slowness_is_confirmed_without_a_trial_that_was_faster(given_):
    faster = {t.id for t in given_.trials if t.versus_baseline and t.versus_baseline.ci95 and t.id != given_.baseline}
    faster = {t.id for t in given_.trials if t.id in faster and t.versus_baseline.ci95[0] > 1}
    changed = [t.configuration for t in given_.trials if t.id in faster and t.kind == "configuration"]
    removed = any(t.id in faster for t in given_.trials if t.kind == "ablation")
    tweaked = {t.tweak for t in given_.trials if t.id in faster}
    for finding in rules.judge(given_):
        if finding.status != "confirmed" or finding.cause in FACTS_OF_THEIR_OWN:
            continue
        for fix in finding.fixes or [None]:
            if fix is None or fix.effect is None or fix.effect.kind == "predicted":
                assert removed
            elif tweaked & fix.changes.keys():
                assert finding.cause in ("sync_defeats_overlap", "intraop_threads_lost")
            else:
                assert any(all(getattr(c, key) == value for key, value in fix.changes.items()) for c in changed)


@given(ANY_FACTS)
def test_without_a_sweep_no_cause_of_slowness_is_confirmed(facts_):
    for name in IDS:
        for finding in rules.judge(inputs(baseline=name, facts_=facts_)):
            assert finding.status != "confirmed" or finding.cause in FACTS_OF_THEIR_OWN


def test_names_and_places_of_a_script_change_nothing():
    here = rules.judge(inputs(**ARTICLE))
    there = rules.judge(inputs(**ARTICLE, loader="/elsewhere/other_name.py:99"))
    assert here == there


def test_sizes_alone_change_nothing_that_is_decided_by_experiment():
    larger = {**ARTICLE["facts_"], "batch_bytes": 77070336, "sample_bytes": 1204224, "batches_per_epoch": 7}
    statuses = [
        {f.cause: (f.status, f.severity) for f in rules.judge(inputs(**{**ARTICLE, "facts_": facts}))}
        for facts in (ARTICLE["facts_"], larger)
    ]
    assert statuses[0] == statuses[1]


def test_what_exists_only_with_workers_is_no_difference_of_its_own():
    assert rules.inputs.difference(configuration("nw4-pin0-pf4-pw"), configuration("nw0-pin0")) == {"num_workers"}
    assert rules.inputs.difference(configuration("nw4-pin0"), configuration("nw4-pin0-pf4")) == {"prefetch_factor"}


def test_an_unsettled_cause_whose_removal_ran_slower_is_not_the_primary_one_and_proposes_nothing():
    findings = rules.judge(
        inputs(
            baseline="nw4-pin0",
            facts_={"wait_share": 0.44, "worker_busy_share": 0.003, "worker_fetch_cpu_share": 1.0},
            trials={"nw0-pin0": {"ratio": 0.15, "rounds": 1}},
        )
    )
    assert by_cause(findings)["worker_ipc_bound"].status == "not_settled"
    assert by_cause(findings)["worker_ipc_bound"].fixes == []
    assert rules.primary(findings).cause == "no_difference"


SHORT_OF_CPUS = {"wait_share": 0.2, "worker_fetch_cpu_share": 0.95, "target_cpu_share": 0.95}
UNSETTLED = {
    "nw0-pin0": {"ratio": 1.2, "ci": [0.8, 1.7], "rounds": 4},
    "compute_only": {"ratio": 3.3, "ci": [3.0, 3.6]},
}


def open_ones(busy, wait=0.2, trials=UNSETTLED):
    facts_ = {**SHORT_OF_CPUS, "wait_share": wait, "worker_busy_share": busy}
    findings = rules.judge(inputs(baseline="nw4-pin0", facts_=facts_, trials=trials))
    causes = ("cpu_bound", "worker_ipc_bound")
    return [each.cause for each in findings if each.cause in causes and each.status in ("suspected", "not_settled")]


def test_a_cause_that_nobody_tried_does_not_come_first_because_its_stage_has_a_high_ceiling():
    assert open_ones(busy=0.49) == ["worker_ipc_bound"]
    assert open_ones(busy=0.51) == ["worker_ipc_bound", "cpu_bound"]


def test_it_does_where_its_own_facts_account_for_more_than_an_experiment_gave():
    assert open_ones(busy=0.75, wait=0.8) == ["cpu_bound", "worker_ipc_bound"]


@pytest.mark.parametrize(("cpu_share", "first"), [(0.8, "cpu_bound"), (0.3, "io_bound")])
def test_untried_causes_come_in_the_order_of_what_their_facts_account_for(cpu_share, first):
    facts_ = {"wait_share": 0.5, "worker_busy_share": 0.7, "worker_fetch_cpu_share": cpu_share}
    findings = rules.judge(inputs(baseline="nw4-pin0", facts_=facts_))
    suspected = [each.cause for each in findings if each.status == "suspected" and each.severity]
    assert suspected[:2] == [first, "worker_ipc_bound"]
