"""The reckoning of sweep_cost.py, over launches that never ran."""

from __future__ import annotations

import json
import math

import msgspec
import pytest
import sweep_cost

from pindiag.journal import Journal
from pindiag.model import AnyRecord, Block, BlockOrder, LaunchEnded, LaunchOrder, RunEnded, Treatment
from pindiag.plan.treatments import baseline_treatment, treatment

SLOW_STORE, DEAR_TO_UNPACK = sweep_cost.PLANTED


@pytest.fixture
def rounds(script, loader_arguments):
    """Four fresh rounds of three configurations, whose rates depend on the round alone."""

    def run(per_round: dict[int, list[float]]) -> Journal:
        baseline = loader_arguments(num_workers=1)
        made = [baseline_treatment(baseline), *(treatment(baseline, {"num_workers": n}) for n in (2, 4))]
        fake = script(baseline=baseline, noise=0.0)
        number = 0
        for turn, rates in per_round.items():
            by_workers = dict(zip((1, 2, 4), rates, strict=True))
            fake.rate = lambda configuration, known=by_workers: known[configuration.num_workers]
            for each in made:
                number += 1
                fake.run(order(each, turn, number))
        return Journal(fake.records)

    return run


def regret(journal: Journal, recommended: str):
    return sweep_cost.regret(journal, recommended, sweep_cost.complete_rounds(journal.launches, 3))


def order(made: Treatment, turn: int, number: int, *, profile: bool = False) -> LaunchOrder:
    block = BlockOrder(block=number, round=turn, trial=made.id)
    return LaunchOrder(purpose="round", treatment=made, blocks=[block], profile=profile)


def test_planted_steps_are_arithmetic():
    assert [SLOW_STORE.step_takes_ms(workers) for workers in (0, 2, 4)] == [100, 40, 20]
    assert [DEAR_TO_UNPACK.step_takes_ms(workers) for workers in (0, 1, 2)] == [40, 100, 100]


@pytest.mark.parametrize(
    ("target", "workers", "lost"), [(SLOW_STORE, 4, 0), (SLOW_STORE, 2, 1), (DEAR_TO_UNPACK, 0, 0)]
)
def test_planted_regret_is_against_the_best_that_was_swept(target, workers, lost, loader_arguments):
    assert target.regret(loader_arguments(num_workers=workers)) == pytest.approx(lost)


def test_only_one_planted_configuration_is_good_enough(loader_arguments):
    for target in sweep_cost.PLANTED:
        regrets = [target.regret(loader_arguments(num_workers=workers)) for workers in target.grid]
        assert sum(regret <= 0.03 for regret in regrets) == 1
        assert target.workers in target.grid


def test_nothing_is_lost_where_the_best_is_recommended(rounds):
    journal = rounds({turn: [100, 150, 200] for turn in (1, 2, 3, 4)})
    assert regret(journal, "nw4-pin0") == (0.0, (0.0, 0.0))


def test_regret_is_measured_in_the_rounds_that_did_not_choose(rounds):
    odd, even = [100, 150, 300], [100, 160, 200]
    journal = rounds({turn: odd if turn % 2 else even for turn in range(1, 7)})
    lost, interval = regret(journal, "nw2-pin0")
    assert lost == pytest.approx(math.sqrt(200 / 160 * 300 / 150) - 1)
    assert interval[0] < 200 / 160 - 1 < 300 / 150 - 1 < interval[1]


def test_what_chance_chose_costs_nothing_in_the_other_rounds(rounds):
    journal = rounds({turn: [100, 190, 200] if turn % 2 else [100, 200, 160] for turn in (1, 2, 3, 4)})
    lost, _ = regret(journal, "nw2-pin0")
    assert lost == pytest.approx(math.sqrt(160 / 200) - 1), "odd rounds choose 4 workers, even ones 2"


@pytest.mark.parametrize("recommended", ["nw1-pin0", "nw2-pin0"])
def test_one_round_says_nothing_of_regret(rounds, recommended):
    assert regret(rounds({1: [100, 150, 200]}), recommended) == (None, None)


def test_a_launch_is_reckoned_without_its_profiler_window(script, loader_arguments):
    baseline = loader_arguments()
    fake = script(startup_s=5.0, overhead_s=1.0)
    fake.run(order(baseline_treatment(baseline), 1, 1))
    fake.run(order(baseline_treatment(baseline), 1, 2, profile=True))
    journal = Journal(fake.records)
    first, second = journal.blocks("round")
    beside_s = sweep_cost.beside_block_s(journal)
    plain = journal.launches[0].ended
    assert beside_s == pytest.approx(plain.seconds - first.seconds)
    assert beside_s > 6
    assert sweep_cost.reckoned_s([first, second], beside_s) == pytest.approx(
        2 * beside_s + first.seconds + second.seconds
    )


def test_without_a_block_that_counts_nothing_is_reckoned(script, loader_arguments):
    made = baseline_treatment(loader_arguments())
    fake = script(fails={made.id: "out of memory"})
    fake.run(order(made, 1, 1))
    with pytest.raises(SystemExit, match="no fresh launch"):
        sweep_cost.beside_block_s(Journal(fake.records))


def test_the_time_around_the_launches_counts_for_both_sides(rounds, loader_arguments):
    journal = rounds({1: [100, 150, 200]})
    launched_s = sweep_cost.launched_s(journal.launches)
    swept = sweep_cost.Swept(launched_s + 3, loader_arguments(), "nw4-pin0", journal)
    row = sweep_cost.case("slow store", swept, 3 * launched_s, (0.0, (0.0, 0.0)))
    assert row["wall_ratio"] == pytest.approx((launched_s + 3) / (3 * launched_s + 3))
    assert row["blocks"] == 3


def test_verification_counts_on_neither_side(script, loader_arguments):
    baseline = loader_arguments(num_workers=1)
    faster = treatment(baseline, {"num_workers": 4})
    fake = script(baseline=baseline, noise=0.0)
    for number, made in enumerate((baseline_treatment(baseline), faster), start=1):
        fake.run(order(made, 1, number))
    searched_s = sweep_cost.launched_s(Journal(fake.records).launches)
    for number, made in enumerate((baseline_treatment(baseline), faster), start=3):
        fake.run(msgspec.structs.replace(order(made, 1, number), purpose="verify"))
    journal = Journal(fake.records)
    verified_s = sweep_cost.launched_s(journal.launches) - searched_s
    assert verified_s > 1
    swept = sweep_cost.Swept(searched_s + verified_s + 3, baseline, faster.id, journal)
    row = sweep_cost.case("slow store", swept, 50.0, (None, None))
    assert row["wall_s"] == pytest.approx(searched_s + 3)
    assert row["verification_s"] == pytest.approx(verified_s)
    assert row["wall_ratio"] == pytest.approx((searched_s + 3) / (3 + 50))


def cut(journal_of: Journal, records: list[AnyRecord]) -> Journal:
    """The same launches, the last of them cut before it gave a block."""
    last = journal_of.launches[-1].id
    left = [record for record in records if record.launch != last or not isinstance(record, (Block, LaunchEnded))]
    ended = next(record for record in records if record.launch == last and isinstance(record, LaunchEnded))
    return Journal([*left, msgspec.structs.replace(ended, status="interrupted")])


@pytest.fixture
def cut_grid(script, loader_arguments):
    """Two complete rounds of two configurations, and a third in which the second launch was cut."""
    baseline = loader_arguments(num_workers=1)
    made = [baseline_treatment(baseline), treatment(baseline, {"num_workers": 4})]
    fake = script(baseline=baseline, noise=0.0, rate=lambda configuration: 100.0 * (1 + configuration.num_workers))
    for number in range(6):
        fake.run(order(made[number % 2], 1 + number // 2, number + 1))
    return cut(Journal(fake.records), fake.records)


def test_of_a_grid_that_was_cut_what_ran_is_scaled_and_complete_rounds_tell_the_regret(cut_grid):
    swept = sweep_cost.Swept(100.0, cut_grid.baseline, "nw1-pin0", cut_grid)
    row = sweep_cost.against_grid("slow store", swept, cut_grid, 2, 6)
    ran_s = sweep_cost.launched_s(cut_grid.launches[:5])
    assert row["grid"] == {
        "configurations": 2,
        "rounds": 6,
        "launches": 5,
        "launched_rounds": 2,
        "wall_s": pytest.approx(ran_s / 5 * 12),
    }
    assert row["regret"] == pytest.approx(500 / 200 - 1)
    assert sweep_cost.regret(cut_grid, "nw1-pin0", {1}) == (None, None)


def test_a_grid_of_which_nothing_ran_has_no_ratio(cut_grid):
    swept = sweep_cost.Swept(100.0, cut_grid.baseline, "nw1-pin0", cut_grid)
    row = sweep_cost.against_grid("slow store", swept, Journal([]), 2, 6)
    assert (row["wall_ratio"], row["regret"], row["grid"]["launches"], row["grid"]["wall_s"]) == (None, None, 0, None)


def test_the_grid_of_the_other_side_has_twelve_configurations(loader_arguments):
    for cpus, accelerator in ((1, None), (2, None), (16, "cuda")):
        grid = sweep_cost.exhaustive(loader_arguments(num_workers=1), cpus, accelerator)
        assert len({made.id for made in grid}) == len(grid) >= 12
        assert grid[0].changes == {}


def test_a_grid_that_is_named_is_the_other_side_s(loader_arguments):
    named = "num_workers=0,1,2,4,8,16 pin_memory=on non_blocking=on,off"
    grid = sweep_cost.exhaustive(loader_arguments(num_workers=1, non_blocking=False), 16, "cuda", named)
    assert [made.changes for made in grid[:1]] == [{}]
    assert {made.configuration.num_workers for made in grid} == {0, 1, 2, 4, 8, 16}
    assert all(made.configuration.pin_memory for made in grid[1:])
    assert len(grid) == 13


def test_every_configuration_of_the_grid_is_launched_once_a_round(loader_arguments):
    grid = sweep_cost.exhaustive(loader_arguments(), 2, None)
    orders = sweep_cost.in_rounds(grid, 2, 1.5)
    names = [order.treatment.id for order in orders]
    assert sorted(names[: len(grid)]) == sorted(names[len(grid) :]) == sorted(made.id for made in grid)
    assert [order.blocks[0].block for order in orders] == list(range(1, len(orders) + 1))
    assert {order.blocks[0].seconds for order in orders} == {1.5}


def test_what_is_done_is_written_where_the_grid_of_a_later_sample_is_interrupted(monkeypatch, tmp_path, capsys):
    where = tmp_path / "figures.json"
    row = {"sample": "a", "recommended": "nw0-pin0", "wall_ratio": 0.1, "regret": 0.01, "regret_ci95": (0.0, 0.02)}

    def full(name, *_):
        return row | {"sample": name}, Journal([RunEnded(launch=0, t_ns=1, status="interrupted")] * (name == "b"))

    monkeypatch.setattr(sweep_cost, "full", full)
    monkeypatch.setattr("sys.argv", ["sweep_cost.py", "a", "b", "c", "--json", str(where)])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        sweep_cost.main()
    assert json.loads(where.read_text()) == {
        "cases": [row | {"sample": name, "regret_ci95": [0.0, 0.02]} for name in "ab"],
        "cut_short": "KeyboardInterrupt",
    }
    told = "{}: nw0-pin0, wall_ratio 0.1, regret 0.01 (0.0, 0.02)\n"
    assert capsys.readouterr().err == told.format("a") + told.format("b")
