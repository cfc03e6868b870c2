"""A line of code that gains clearly more than any configuration leads the sentence; else it is told after it."""

import pytest

from pindiag import rules
from pindiag.model import Safety
from pindiag.rules import tweaks
from pindiag.rules.inputs import Facts

from .build import inputs

OWN = "nw4-pin0"
TWEAK = f"{OWN}+fewer_intraop_threads"
QUEUEING = {
    "run_delay_share": 0.4,
    "usable_cpus": 4,
    "intraop_threads": 4,
    "worker_threads": 3,
    "accelerator_present": False,
    "wait_share": 0.5,
    "wait_cpu_share": 0.1,
    "hand_off_share": 0.4,
}
TRIALS = {TWEAK: {"ratio": 2.2, "ci": [2.1, 2.3]}, "nw0-pin0": {"ratio": 1.3, "ci": [1.25, 1.36]}}


def crowded(**changes):
    asked = {"baseline": OWN, "facts_": QUEUEING, "trials": TRIALS, "recommend": "nw0-pin0", "tweak": TWEAK}
    return inputs(**(asked | changes))


def told(made):
    return rules.verdict(rules.judge(made), made)


def test_it_leads_verified_and_the_configuration_is_told_after_it():
    said = told(crowded(verified=(2.0, 1.9, 2.1)))
    assert said.primary_cause == "native_threads_in_workers"
    assert said.lead == (
        "Call `torch.set_num_threads(2)` before training begins, which leaves CPUs to the workers: 2.00 × faster (95 % "
        "interval 1.90–2.10, verified by 4 pairs of fresh launches). `num_workers=0` alone brings 1.30 ×; both "
        "together were not tried."
    )


def test_it_leads_unverified_where_there_was_no_time_for_pairs():
    lead = told(crowded()).lead
    assert lead.startswith("Call `torch.set_num_threads(2)` before training begins")
    assert "2.20 × faster (95 % interval 2.10–2.30, measured)" in lead


def test_it_is_the_recommended_fix_and_that_of_its_finding():
    made = crowded(verified=(2.0, 1.9, 2.1))
    fix = rules.recommended_fix(made)
    assert fix.changes == {"fewer_intraop_threads": 2}
    assert (fix.effect.kind, fix.effect.ratio, fix.effect.ci95) == ("verified", 2.0, (1.9, 2.1))
    assert fix.safety == Safety(status="passed", reason="It changes no batch, so none had to be compared.")
    [primary] = [one for one in rules.judge(made) if one.cause == "native_threads_in_workers"]
    assert primary.fixes == [fix]
    assert "pairs of fresh launches 21" in primary.evidence[-1].source


def test_where_it_does_not_lead_the_configuration_does_and_the_code_follows():
    said = told(crowded(tweak=None, verified=(1.9, 1.8, 2.3)))
    assert said.lead == (
        "Set `num_workers=0` at train.py:14: 1.90 × faster (95 % interval 1.80–2.30, verified by 4 pairs of fresh "
        "launches). Mending a surplus of native threads alone brings 2.20 × (call `torch.set_num_threads(2)` before "
        "training begins, which leaves CPUs to the workers)."
    )
    assert rules.recommended_fix(crowded(tweak=None)).changes == {"num_workers": 0}


def test_it_leads_although_no_rule_explains_it():
    said = told(crowded(facts_={**QUEUEING, "run_delay_share": 0.01}, trials={TWEAK: TRIALS[TWEAK]}, recommend=OWN))
    assert said.headline == (
        "Call `torch.set_num_threads(2)` before training begins, which leaves CPUs to the workers: 2.20 × faster."
    )
    assert len(said.headline.split()) <= 24


def test_the_configuration_is_told_after_it_although_no_rule_explains_either():
    said = told(crowded(facts_={**QUEUEING, "run_delay_share": 0.01}))
    assert said.headline.startswith("Call `torch.set_num_threads(2)`")
    assert said.lead.endswith("`num_workers=0` alone brings 1.30 ×; both together were not tried.")


def test_what_concerns_workers_is_not_missed_beside_none():
    tweak = f"{OWN}+worker_threads"
    trials = {tweak: TRIALS[TWEAK], "nw0-pin0": TRIALS["nw0-pin0"]}
    said = told(crowded(facts_={**QUEUEING, "worker_threads": 8}, trials=trials, tweak=tweak))
    assert said.lead.endswith("`num_workers=0` alone brings 1.30 ×.")


def test_a_gain_comes_before_a_pin_that_does_nothing():
    own = "nw4-pin1"
    tweak = f"{own}+fewer_intraop_threads"
    facts = {**QUEUEING, "run_delay_share": 0.01, "pin_asked": True}
    said = told(crowded(baseline=own, facts_=facts, trials={tweak: TRIALS[TWEAK]}, recommend=own, tweak=tweak))
    assert said.primary_cause == "pin_without_accelerator"
    assert said.headline.startswith("Call `torch.set_num_threads(2)` before training begins")
    assert said.lead.endswith("pinning does nothing: remove `pin_memory=True` at train.py:14, or guard it.")


def test_a_gain_that_its_pairs_do_not_show_leads_nothing():
    assert rules.recommended_fix(crowded(recommend=OWN, verified=(1.01, 0.97, 1.05))) is None


def test_with_arguments_both_are_one_change_and_the_gate_spoke_of_the_arguments():
    both = "nw0-pin0+fewer_intraop_threads"
    made = crowded(trials={both: TRIALS[TWEAK], "nw0-pin0": TRIALS["nw0-pin0"]}, tweak=both)
    fix = rules.recommended_fix(made)
    assert fix.summary.startswith("Set `num_workers=0`, and call `torch.set_num_threads(2)`")
    assert fix.changes == {"num_workers": 0, "fewer_intraop_threads": 2}
    assert fix.safety.status == "not_checked"
    assert fix.safety.reason.startswith("Of `num_workers=0`: Batches under this change were not compared")
    assert told(made).lead.endswith(" `num_workers=0` alone brings 1.30 ×.")


TOGETHER = "nw0-pin0+fewer_intraop_threads"


def four_cells(together, tweak=TWEAK, recommend="nw0-pin0", **changes):
    """The script as written, each mend alone, and both."""
    return crowded(trials=TRIALS | {TOGETHER: together}, tweak=tweak, recommend=recommend, **changes)


def test_what_both_bring_together_is_told_where_one_of_them_leads():
    made = four_cells({"ratio": 2.25, "ci": [2.15, 2.35]}, verified=(2.0, 1.9, 2.1))
    assert told(made).lead.endswith(" `num_workers=0` alone brings 1.30 ×, both together 2.25 ×."), (
        "the line of code is what the sentence began with"
    )
    [primary] = [one for one in rules.judge(made) if one.cause == "native_threads_in_workers"]
    assert (
        " `num_workers=0` alone brings 1.30 × (1.25–1.36), the line of code alone 2.00 × (1.90–2.10), both together "
        "2.25 × (2.15–2.35). With half as many threads"
    ) in primary.explanation
    assert primary.fixes == [rules.recommended_fix(made)]


def test_both_lead_as_one_change_and_each_alone_is_told_after_it():
    made = four_cells({"ratio": 2.8, "ci": [2.7, 2.9]}, tweak=TOGETHER, verified=(2.7, 2.6, 2.8))
    assert told(made).lead == (
        "Set `num_workers=0`, and call `torch.set_num_threads(2)` before training begins, which leaves CPUs to the "
        "workers: 2.70 × faster (95 % interval 2.60–2.80, verified by 4 pairs of fresh launches). Mending a surplus of "
        "native threads alone brings 2.20 × (call `torch.set_num_threads(2)` before training begins, which leaves CPUs "
        "to the workers). `num_workers=0` alone brings 1.30 ×."
    )
    fix = rules.recommended_fix(made)
    assert fix.changes == {"num_workers": 0, "fewer_intraop_threads": 2}
    assert fix.effect.kind == "verified"


def test_both_lead_although_no_rule_explains_either():
    facts = {**QUEUEING, "run_delay_share": 0.01}
    said = told(four_cells({"ratio": 2.8, "ci": [2.7, 2.9]}, tweak=TOGETHER, facts_=facts))
    assert said.headline.startswith("Set `num_workers=0`, and call `torch.set_num_threads(2)`")
    assert said.lead.endswith(" `num_workers=0` alone brings 1.30 ×, the line of code alone 2.20 ×.")


def test_what_both_bring_is_told_where_the_configuration_leads():
    said = told(four_cells({"ratio": 2.25, "ci": [2.15, 2.35]}, tweak=None))
    assert said.lead.endswith("to the workers). Both together bring 2.25 ×.")


def test_both_with_another_configuration_than_the_recommended_one_are_told_with_that_one():
    trials = TRIALS | {"nw2-pin0": {"ratio": 1.2, "ci": [1.15, 1.25]}}
    trials["nw2-pin0+fewer_intraop_threads"] = {"ratio": 2.25, "ci": [2.15, 2.35]}
    assert told(crowded(trials=trials)).lead.endswith(" `num_workers=2` alone brings 1.20 ×, both together 2.25 ×.")


@pytest.mark.parametrize("tweak", tweaks.TWEAKS)
@pytest.mark.parametrize("arguments", [{}, {"num_workers": 0}])
def test_every_advice_is_one_clause_that_a_gain_may_follow(tweak, arguments):
    facts = Facts(inputs(baseline=OWN, facts_={**QUEUEING, "intraop_threads_no_pin_thread": 8}))
    said = tweaks.summary(tweak, arguments, facts)
    assert said[0].isupper()
    assert said.endswith(".")
    prose = "".join(said.split("`")[::2])
    assert prose.count(".") == 1
    assert ":" not in prose
    assert tweaks.changes(tweak, facts)[tweak]
