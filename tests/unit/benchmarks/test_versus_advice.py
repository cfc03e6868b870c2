"""What versus_advice.py launches, chooses and concludes, over launches that never ran."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import versus_advice
from versus_advice import Host, Limits, Rounds, Standings, rules

from pindiag.journal import Journal
from pindiag.model import RunEnded
from pindiag.plan.treatments import treatment
from pindiag.stats import Rate

HOST = Host(cpus=16, allowed_cpus=12, threads=8, has_gpu=True)


@pytest.fixture
def baseline(loader_arguments):
    return loader_arguments(num_workers=2, non_blocking=False)


@pytest.fixture
def conduct(script, baseline):
    """Rounds over launches whose throughput depends on workers and pinning alone."""

    def run(rate, recommended: dict, *, limits: Limits | None = None, noise: float = 0.0, fails=()):
        advice = [treatment(baseline, changes) for changes in rules(HOST).values()]
        plan = Rounds(advice, treatment(baseline, recommended), limits or Limits())
        fake = script(baseline=baseline, noise=noise, rate=rate, fails=dict.fromkeys(fails, "out of memory"))
        while (order := plan.next_launch(fake.records)) is not None:
            fake.run(order)
        journal = Journal(fake.records)
        return plan.standings(journal), journal

    return run


def by_round(journal: Journal) -> dict[int, list[str]]:
    told: dict[int, list[str]] = {}
    for launch in journal.launches:
        told.setdefault(launch.round, []).append(launch.treatment.id)
    return told


def test_rules_are_those_of_the_benchmark(baseline):
    made = {rule: treatment(baseline, changes).id for rule, changes in rules(HOST).items()}
    assert made == {
        "as written": "nw2-pin0-nb0",
        "pin_memory and non_blocking": "nw2-pin1-nb1",
        "workers = CPUs": "nw16-pin0-nb0",
        "workers = CPUs / 2": "nw8-pin0-nb0",
        "4 workers": "nw4-pin0-nb0",
        "create_optimal_dataloader": "nw8-pin1-nb0-pw",
        "torch's suggestion": "nw12-pin0-nb0",
    }


def test_the_quick_run_leaves_out_rules_that_there_are():
    assert versus_advice.QUICK.left_out < rules(HOST).keys()


def test_on_one_cpu_half_of_them_is_one_and_nothing_is_pinned_without_a_gpu():
    few = rules(Host(cpus=1, allowed_cpus=1, threads=1, has_gpu=False))
    assert few["workers = CPUs / 2"] == {"num_workers": 1}
    assert few["create_optimal_dataloader"]["pin_memory"] is False


def test_a_gain_over_the_best_advice_is_measured_in_rounds_that_did_not_choose(conduct):
    known, journal = conduct(
        lambda made: 1000 if made.num_workers == 0 else 400 + 10 * made.num_workers, {"num_workers": 0}
    )
    assert known.best == "nw16-pin0-nb0"
    assert known.ratio.value == pytest.approx(1000 / 560, rel=0.01)
    assert known.ratio.ci95[0] > 1.7
    told = by_round(journal)
    assert all("nw0-pin0-nb0" not in told[number] for number in told if number % 2)
    assert all(sorted(told[number]) == ["nw0-pin0-nb0", "nw16-pin0-nb0"] for number in told if number % 2 == 0)


def test_all_rules_run_three_times_and_then_those_that_are_not_shown_to_be_slower(conduct):
    rate = lambda made: 1000 if made.num_workers >= 12 else 500  # noqa: E731
    _, journal = conduct(rate, {"num_workers": 0}, noise=0.02, limits=Limits(rounds=8))
    told = by_round(journal)
    assert len(told[1]) == len(told[3]) == len(told[5]) == 7
    assert sorted(told[7]) == ["nw12-pin0-nb0", "nw16-pin0-nb0"]


def test_choosing_ends_and_measuring_goes_on(conduct):
    limits = Limits(rounds=12, choosing=2)
    _, journal = conduct(lambda made: 1000.0, {"num_workers": 0}, noise=0.3, limits=limits)
    assert set(by_round(journal)) == {1, 2, 3, 4, 6, 8, 10, 12}


def test_rules_that_come_to_the_same_run_once(conduct, script, baseline):
    few = Host(cpus=4, allowed_cpus=4, threads=2, has_gpu=False)
    advice = [treatment(baseline, changes) for changes in rules(few).values()]
    plan = Rounds(advice, advice[0], Limits(rounds=1))
    fake = script(baseline=baseline)
    while (order := plan.next_launch(fake.records)) is not None:
        fake.run(order)
    (told,) = by_round(Journal(fake.records)).values()
    assert sorted(told) == ["nw2-pin0-nb0", "nw2-pin0-nb0-pw", "nw2-pin1-nb1", "nw4-pin0-nb0"]


def test_the_order_of_a_round_is_random(conduct):
    orders = [by_round(conduct(lambda made: 500, {"num_workers": 0})[1])[number] for number in (1, 3)]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


def test_where_the_recommendation_is_the_best_advice_nothing_is_measured(conduct):
    known, journal = conduct(lambda made: 100 * (1 + made.num_workers), {"num_workers": 16})
    assert known.same
    assert set(by_round(journal)) == {1, 3, 5}
    assert known.settled


@pytest.mark.parametrize(("choosing", "settled"), [(3, False), (4, True)])
def test_a_recommendation_that_leads_by_a_hair_is_not_called_the_best_at_once(choosing, settled):
    pairs = [(1.1, 1.0), (1.0, 1.0), (1.0, 1.1), (1.2, 1.0)][:choosing]
    rates = [Rate(2 * n + 1, trial, value) for n, pair in enumerate(pairs) for trial, value in zip("ab", pair)]
    known = Standings(rates, ["a", "b"], "a", Limits())
    assert known.near == ["a", "b"]
    assert known.same
    assert known.settled == settled


def test_rounds_go_on_until_the_interval_is_narrow_or_the_limit_is_reached(conduct):
    calm, _ = conduct(lambda made: 1000.0, {"num_workers": 0}, noise=0.01)
    assert calm.ratio.half_width <= Limits.narrow
    assert calm.ratio.count < 6
    loud, journal = conduct(lambda made: 1000.0, {"num_workers": 0}, noise=0.3, limits=Limits(rounds=10))
    assert max(by_round(journal)) == 10
    assert not loud.settled


def test_advice_that_fails_is_out_and_named(conduct):
    known, journal = conduct(lambda made: 100 * (1 + made.num_workers), {"num_workers": 0}, fails=("nw16-pin0-nb0",))
    assert known.best == "nw12-pin0-nb0"
    assert [told.count("nw16-pin0-nb0") for told in by_round(journal).values()].count(1) == 1
    assert versus_advice.failures(journal) == {"nw16-pin0-nb0": "out of memory"}


def test_a_recommendation_that_fails_has_no_ratio(conduct):
    known, _ = conduct(lambda made: 1000.0, {"num_workers": 0}, fails=("nw0-pin0-nb0",), limits=Limits(rounds=6))
    assert known.ratio is None


@pytest.fixture
def interrupted(script, baseline):
    """Rounds of which so many launches ran before the user ended them, and what is known then."""

    def run(launches: int):
        advice = [treatment(baseline, changes) for changes in rules(HOST).values()]
        plan = Rounds(advice, treatment(baseline, {"num_workers": 0}), Limits())
        fake = script(baseline=baseline, noise=0.01, rate=lambda made: 1000 if made.num_workers == 0 else 500)
        for _ in range(launches):
            fake.run(plan.next_launch(fake.records))
        journal = Journal([*fake.records, RunEnded(launch=0, t_ns=fake.now_ns, status="interrupted")])
        return plan.standings(journal), journal

    return run


SWEPT = SimpleNamespace(recommended="nw0-pin0-nb0", wall_s=12.0)


def test_interrupted_before_a_round_has_chosen_there_is_no_best_advice(interrupted):
    known, journal = interrupted(4)
    row = versus_advice.case("tabular_rows", SWEPT, {"as written": "nw2-pin0-nb0"}, known, journal)
    assert (row["choosing_rounds"], row["best_advice"], row["ratio_to_best_advice"]) == (0, None, None)
    whole = versus_advice.case("tabular_rows", SWEPT, {}, *interrupted(9))
    assert row.keys() == whole.keys()


def test_interrupted_later_the_complete_rounds_count(interrupted):
    measured, journal = interrupted(7 + 2 + 3)
    assert set(by_round(journal)) == {1, 2, 3}
    assert (measured.choosing, measured.ratio.count) == (1, 1)
    assert measured.ratio.value == pytest.approx(2, rel=0.1)


def test_where_no_rule_can_be_launched_it_says_so(conduct, baseline):
    every = [treatment(baseline, changes).id for changes in rules(HOST).values()]
    with pytest.raises(SystemExit, match="gave a block that counts"):
        conduct(lambda made: 1000.0, {"num_workers": 0}, fails=every)


def test_a_row_says_what_was_compared(conduct):
    known, journal = conduct(lambda made: 1000 if made.num_workers == 0 else 500, {"num_workers": 0})
    swept = SimpleNamespace(recommended="nw0-pin0-nb0", wall_s=12.0)
    row = versus_advice.case("tabular_rows", swept, {"as written": known.best, "4 workers": "nw4"}, known, journal)
    assert row["ratio_to_best_advice"] == pytest.approx(2, rel=0.05)
    assert row["ci95"] == pytest.approx([2, 2], rel=0.1)
    assert (row["same"], row["best_rules"], row["failed"]) == (False, ["as written"], {})


def test_a_row_of_the_best_advice_itself_is_exactly_one(conduct):
    known, journal = conduct(lambda made: 100 * (1 + made.num_workers), {"num_workers": 16})
    swept = SimpleNamespace(recommended="nw16-pin0-nb0", wall_s=12.0)
    row = versus_advice.case("tabular_rows", swept, {}, known, journal)
    assert (row["ratio_to_best_advice"], row["ci95"], row["same"]) == (1.0, (1.0, 1.0), True)


def test_the_quick_target_is_far_faster_without_workers():
    takes = versus_advice.PLANTED.step_takes_ms
    assert math.isclose(takes(1) / takes(0), 5)
    assert all(takes(workers) == takes(1) for workers in (2, 4, 16))
