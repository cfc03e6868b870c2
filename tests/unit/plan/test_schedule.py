from collections import Counter
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pindiag.journal import Journal
from pindiag.model import Block, RunEnded
from pindiag.plan.grid import default_treatments
from pindiag.plan.schedule import leading, next_order, remaining
from pindiag.race import chosen


def by_workers(**rates):
    return lambda made: rates.get(f"nw{made.num_workers}", 1000.0)


def purposes(orders):
    return Counter(order.purpose for order in orders)


def names(orders, number):
    return [order.treatment.id for order in orders if order.purpose == "round" and order.blocks[0].round == number]


def test_discovers_first_and_takes_it_for_the_first_baseline_block(script, spec):
    fake = script()
    orders = fake.play(partial(next_order, spec()))
    first = orders[0]
    assert (first.purpose, first.treatment, first.profile) == ("discover", None, True)
    assert names(orders, 1).count("nw4-pin0") == 1
    assert names(orders, 2).count("nw4-pin0") == 2
    assert all(count == 1 for name, count in Counter(names(orders, 1)).items() if name != "nw4-pin0")


def test_block_ids_are_unique_and_only_round_one_is_profiled(script, spec):
    orders = script().play(partial(next_order, spec()))
    ids = [block.block for order in orders for block in order.blocks]
    assert sorted(ids) == list(range(1, len(ids) + 1))
    profiled = [order for order in orders if order.profile]
    assert all(order.blocks[0].round == 1 for order in profiled)
    assert len({order.blocks[0].trial for order in profiled}) == len(profiled)


def test_the_seed_decides_the_order(script, spec):
    first, same, other = (script().play(partial(next_order, spec(seed=seed))) for seed in (1, 1, 2))
    assert names(first, 1) == names(same, 1) != names(other, 1)
    assert sorted(names(first, 1)) == sorted(names(other, 1))


def test_verifies_the_leader_in_alternating_order(script, spec):
    fake = script(rate=by_workers(nw0=1500.0))
    orders = fake.play(partial(next_order, spec()))
    verified = [order.treatment.id for order in orders if order.purpose == "verify"]
    assert verified[:4] == ["nw4-pin0", "nw0-pin0", "nw0-pin0", "nw4-pin0"]
    assert len(verified) >= 8
    assert orders[-1].purpose == "verify"


def test_a_noisy_machine_is_verified_longer(script, spec):
    quiet, noisy = (
        purposes(script(rate=by_workers(nw0=2500.0), noise=noise).play(partial(next_order, spec(budget_s=900))))[
            "verify"
        ]
        for noise in (0.005, 0.08)
    )
    assert quiet == 8 < noisy


def test_nothing_is_verified_when_the_baseline_leads_or_nobody_asked(script, spec):
    assert purposes(script().play(partial(next_order, spec())))["verify"] == 0
    fake = script(rate=by_workers(nw0=1500.0))
    assert purposes(fake.play(partial(next_order, spec(verify=False))))["verify"] == 0


def test_without_sweep_only_the_baseline_runs(script, spec):
    orders = script().play(partial(next_order, spec(sweep=False)))
    assert {order.treatment.id for order in orders[1:]} == {"nw4-pin0"}
    assert len(orders) == 6


def test_grid_rounds_steps_and_natural_epochs_are_passed_on(script, spec):
    fake = script(fails_past_end=True)
    orders = fake.play(partial(next_order, spec(grid="num_workers=0,4", rounds=2, steps=50)))
    assert {order.treatment.id for order in orders[1:]} == {"nw0-pin0", "nw4-pin0"}
    assert max(order.blocks[0].round for order in orders) == 2
    assert {order.blocks[0].steps for order in orders} == {50}
    assert [order.natural_epochs for order in orders] == [False] + [True] * (len(orders) - 1)
    assert names(orders, 1).count("nw4-pin0") == 2


def test_beaten_configurations_leave_early(script, spec):
    fake = script(rate=by_workers(nw0=2000.0, nw8=300.0), noise=0.01)
    orders = fake.play(partial(next_order, spec(budget_s=2000)))
    assert "nw8-pin0-pf4" in names(orders, 3)
    assert "nw8-pin0-pf4" not in names(orders, 4)
    assert "nw0-pin0" in names(orders, 6)
    assert names(orders, 6).count("nw4-pin0") == 2


def test_when_time_is_short_treatments_give_way_before_rounds(script, spec):
    fake = script(rate=by_workers(nw0=1500.0))
    orders = fake.play(partial(next_order, spec(budget_s=60)))
    rounds = Counter(order.blocks[0].round for order in orders if order.purpose == "round")
    assert rounds[1] > rounds[2] >= 3
    assert max(rounds) >= 3
    assert all(order.blocks[0].seconds >= 1.0 for order in orders)
    assert chosen(Journal(fake.records)) == "nw0-pin0"


def test_the_first_round_is_cut_when_launches_turn_out_dear(script, spec):
    fake = script(rate=by_workers(nw0=1500.0), noise=0.01, overhead_s=0.1)
    decide = partial(next_order, spec(budget_s=60))
    fake.run(decide(fake.records))
    fake.overhead_s = 3.0
    orders = fake.play(decide)
    tried = set(names(orders, 1)) - {"nw4-pin0"}
    assert 5 <= len(tried) < 10
    assert names(orders, 3)
    assert names(orders, 1).count("nw4-pin0") == 1


def test_what_has_no_turn_is_named_with_its_reason(script, spec):
    orders = script().play(partial(next_order, spec(budget_s=15)))
    first = next(order for order in orders if order.purpose == "round")
    ran = {order.treatment.id for order in orders[1:]}
    assert set(first.skipped) | ran <= {made.id for made in first.planned}
    assert not set(first.skipped) & ran
    assert all("15 s" in reason for reason in first.skipped.values())
    assert first.skipped


@pytest.mark.parametrize(("reason", "tries"), [("killed: out of memory", 1), ("ValueError: no", 2)])
def test_failing_treatments_are_given_up(script, spec, reason, tries):
    fake = script(fails={"nw0-pin0": reason})
    orders = fake.play(partial(next_order, spec()))
    assert sum(order.treatment is not None and order.treatment.id == "nw0-pin0" for order in orders) == tries
    assert purposes(orders)["round"] > 20


def test_a_treatment_that_hangs_is_tried_once(script, spec):
    orders = script(hangs=("nw0-pin0",)).play(partial(next_order, spec()))
    assert [order.treatment and order.treatment.id for order in orders].count("nw0-pin0") == 1


def test_a_script_that_fails_by_itself_is_started_once(script, spec):
    assert len(script(fails={"nw4-pin0": "ValueError: no"}).play(partial(next_order, spec()))) == 1


def test_a_baseline_that_fails_later_stops_the_run(script, spec):
    fake = script()
    decide = partial(next_order, spec())
    for _ in range(4):
        fake.run(decide(fake.records))
    fake.fails = {"nw4-pin0": "ValueError: no"}
    orders = fake.play(decide)
    assert [order.treatment.id for order in orders].count("nw4-pin0") == 2
    assert orders[-1].treatment.id == "nw4-pin0"


def test_nothing_follows_an_interruption(script, spec):
    fake = script()
    fake.run(next_order(spec(), []))
    assert next_order(spec(), [*fake.records, RunEnded(launch=0, t_ns=0, status="interrupted")]) is None


def test_a_cut_run_goes_on_where_it_stopped(script, spec):
    fake = script(rate=by_workers(nw0=1500.0))
    decide = partial(next_order, spec())
    whole = [order.blocks[0] for order in script(rate=by_workers(nw0=1500.0)).play(decide)]
    cut = []
    for _ in range(9):
        cut.append(decide(fake.records))
        fake.run(cut[-1])
    rest = fake.play(decide)
    assert [order.blocks[0] for order in [*cut, *rest]] == whole


def test_progress_runs_towards_its_total(script, spec):
    fake = script(rate=by_workers(nw0=1500.0))
    asked = spec()
    seen = []
    while (order := next_order(asked, fake.records)) is not None:
        seen.append(remaining(asked, fake.records))
        fake.run(order)
    last = remaining(asked, fake.records)
    assert [left.done for left in seen] == list(range(len(seen)))
    assert all(left.total > left.done for left in seen)
    assert last.done == len(seen)
    assert leading(asked, fake.records)[0] == "nw0-pin0"


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    budget=st.floats(1, 900),
    rounds=st.integers(1, 12),
    noise=st.floats(0, 0.3),
    accelerator=st.sampled_from([None, "cuda"]),
    seed=st.integers(0, 5),
)
def test_every_schedule_ends_within_its_budget(
    script, spec, loader_arguments, data, budget, rounds, noise, accelerator, seed
):
    baseline = loader_arguments(non_blocking=False if accelerator else None)
    ids = [made.id for made in default_treatments(baseline, 8, accelerator)]
    fails = data.draw(
        st.dictionaries(st.sampled_from(ids), st.sampled_from(["out of memory", "exit status 1"]), max_size=3)
    )
    hangs = data.draw(st.lists(st.sampled_from(ids), max_size=2))
    speed = data.draw(st.lists(st.floats(50, 20000), min_size=5, max_size=5))
    fake = script(
        baseline=baseline,
        accelerator=accelerator,
        noise=noise,
        seed=seed,
        fails=fails,
        hangs=tuple(hangs),
        rate=lambda made: speed[made.num_workers % 5],
    )
    asked = spec(budget_s=budget, rounds=rounds, seed=seed)
    fake.play(partial(next_order, asked))
    slowest = max(1.5, 4 * 64 / min(speed)) * 1.6 + 2.0
    assert fake.spent_s() <= budget + 2 * slowest + 2 * fake.hang_s * len(hangs)
    assert fake.records[-1].launch == len({record.launch for record in fake.records})
    assert all(record.round <= max(rounds, 24) for record in fake.records if isinstance(record, Block))
