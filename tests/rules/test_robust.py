"""Whatever a rule is told, it does not break, and confirms no cause of slowness without its experiment.

The facts of each rule are read from its own source and those of the modules that it asks, so that a new rule is told
of its own facts too.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pindiag import rules
from pindiag.model import Fact
from pindiag.rules import engine

from .build import inputs

RULES = rules.catalogue()
FACT = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
BASELINES = ("nw0-pin0", "nw2-pin0", "nw4-pin0-nb0", "nw2-pin1-nb0", "nw4-pin1-nb1", "nw0-pin1-nb1")
TRIALS = (
    *BASELINES,
    "nw8-pin0",
    "nw1-pin0",
    "compute_only",
    "host_batch-pin0-nb0",
    "host_batch-pin1-nb1",
    "loader_only-nw2-pin0",
    "loader_only-nw4-pin1",
    "nw4-pin1-nb1+lazy_sync",
    "nw2-pin1-nb0+intraop_threads",
)
HUGE = 1e300
VALUE = st.one_of(
    st.sampled_from([None, 0, 0.0, 1, -1, -0.5, 0.999, 1.5, HUGE, -HUGE, 2**80, float("nan"), float("inf")]),
    st.floats(),
    st.floats(0, 1),
    st.integers(),
    st.booleans(),
    st.sampled_from(["", "nothing", "train.py:3", "train.py:3, item: 4", "2.13.0", "fork", "; , :"]),
)
SHOWN = st.sampled_from([0.0, 0.3, 0.98, 1.0, 1.04, 1.3, 4.0, HUGE, -1.0, float("nan")])
TRIAL = st.fixed_dictionaries(
    {"ratio": SHOWN, "ci": st.one_of(st.none(), st.tuples(SHOWN, SHOWN))},
    optional={"rounds": st.integers(0, 8), "status": st.sampled_from(["measured", "failed", "skipped"])},
)


def named_by(rule):
    """Whatever may be the name of a fact in a rule's module and in those of `pindiag.rules` that it uses."""
    own = sys.modules[rule.check.__module__]
    used = [each for each in vars(own).values() if getattr(each, "__module__", "").startswith("pindiag.rules")]
    modules = {own, *(sys.modules[each.__module__] for each in used)}
    modules |= {each for each in vars(own).values() if inspect.ismodule(each) and each.__name__.startswith("pindiag.r")}
    constants = (each for made in modules for each in ast.walk(ast.parse(inspect.getsource(made))))
    texts = (each.value for each in constants if isinstance(each, ast.Constant) and isinstance(each.value, str))
    return sorted({text for text in texts if FACT.fullmatch(text)} | {"accelerator_present"})


def fact(name, value, trial):
    return Fact(name=name, value=value, unit=None, trial=trial, source="blocks 1, 2", reason=None)


@st.composite
def anything(draw, names, trials=TRIALS):
    """Facts of the run and of its trials, which may contradict each other."""
    baseline = draw(st.sampled_from(BASELINES))
    ran = draw(st.dictionaries(st.sampled_from([each for each in trials if each != baseline]), TRIAL)) if trials else {}
    known = [
        fact(name, value, trial)
        for trial in (None, baseline, *ran)
        for name, value in draw(st.dictionaries(st.sampled_from(names), VALUE)).items()
    ]
    target = {"status": draw(st.sampled_from(["ok", "failed", "interrupted"]))}
    floor = draw(st.one_of(st.none(), SHOWN))
    made = inputs(baseline=baseline, trials=ran, target=target, floor=floor)
    return replace(made, facts=known)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_no_fact_breaks_a_rule(rule):
    @settings(max_examples=30)
    @given(anything(named_by(rule)))
    def holds(told):
        (finding,) = engine.judge(told, [rule])
        assert finding.status != "error", finding.reason

    holds()


@pytest.mark.parametrize("rule", [rule for rule in RULES if not rule.of_fact], ids=lambda rule: rule.name)
def test_no_cause_of_slowness_is_confirmed_where_nothing_else_ran(rule):
    @settings(max_examples=30)
    @given(anything(named_by(rule), trials=()))
    def holds(told):
        (finding,) = engine.judge(told, [rule])
        assert finding.status != "confirmed"

    holds()


@pytest.mark.parametrize("rule", [rule for rule in RULES if not rule.of_fact], ids=lambda rule: rule.name)
def test_no_cause_of_slowness_is_confirmed_where_nothing_was_faster(rule):
    @settings(max_examples=30)
    @given(anything(named_by(rule)))
    def holds(told):
        slow = [each for each in told.trials if each.id == told.baseline or not _may_be_faster(each)]
        (finding,) = engine.judge(replace(told, trials=slow), [rule])
        assert finding.status != "confirmed"

    holds()


def _may_be_faster(trial):
    versus = trial.versus_baseline
    return versus is None or versus.ci95 is None or not all(0 <= bound <= 1 for bound in versus.ci95)


def test_facts_are_found_where_rules_name_them():
    named = {rule.name: named_by(rule) for rule in RULES}
    assert "wait_share" in named["cpu_bound"]
    assert "hand_pin_ms_per_step" in named["main_thread_pin"]
    assert all(len(names) > 1 for names in named.values())
