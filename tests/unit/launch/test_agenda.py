import msgspec
import pytest

from pindiag.launch.agenda import Agenda
from pindiag.model import (
    AnyRecord,
    Block,
    BlockOrder,
    FirstStep,
    LaunchOrder,
    LoaderChosen,
    NextBlocks,
    Treatment,
    Window,
)

from .records import block, found


def ordered(number: int, trial: str = "a") -> BlockOrder:
    return BlockOrder(block=number, round=1, trial=trial)


def ran(status: str = "counted") -> AnyRecord:
    return msgspec.structs.replace(block(1, 100), status=status)


def window(trial: str) -> Window:
    return Window(launch=1, t_ns=0, trial=trial, steps=10, trace=None, reason="planted", seconds=0.1)


class Plan:
    def __init__(self, *told: NextBlocks) -> None:
        self._told = list(told)
        self.after: list[BlockOrder | None] = []

    def ask(self, last: BlockOrder | None) -> NextBlocks:
        self.after.append(last)
        return self._told.pop(0)


def agenda(plan: Plan, *blocks: BlockOrder, **fields: object) -> Agenda:
    order = LaunchOrder(**{"purpose": "round", "treatment": None, "blocks": list(blocks)} | fields)
    return Agenda(order, blocks, plan.ask)


@pytest.mark.parametrize(("profile", "then"), [(True, "profile"), (False, "stop")])
def test_a_fresh_launch_asks_nobody(profile: bool, then: str) -> None:
    plan = Plan()
    made = agenda(plan, ordered(1), profile=profile)
    assert not made.done
    made.heard(ran())
    assert (made.answer().then, made.done, made.running) == (then, True, None)
    assert plan.after == []


def test_a_fresh_launch_goes_on_while_blocks_are_left() -> None:
    made = agenda(Plan(), ordered(1), ordered(2))
    made.heard(ran())
    answer = made.answer()
    assert (answer.then, list(answer.blocks), made.done) == ("blocks", [], False)
    made.heard(ran())
    assert made.answer().then == "stop"


def test_a_live_launch_is_told_blocks_then_windows() -> None:
    plan = Plan(NextBlocks(blocks=[ordered(2, "b")]), NextBlocks(windows=[ordered(0, "a"), ordered(0, "b")]))
    made = agenda(plan, ordered(1), isolation="live")
    made.heard(ran())
    answer = made.answer()
    assert (answer.then, list(answer.blocks), made.done) == ("blocks", [ordered(2, "b")], False)
    assert made.running == ordered(2, "b")
    made.heard(ran())
    answer = made.answer()
    assert (answer.then, [order.trial for order in answer.windows], made.done) == ("windows", ["a", "b"], True)
    made.heard(window("a"))
    assert made.running == ordered(0, "b")
    made.heard(window("b"))
    assert made.running is None
    assert plan.after == [ordered(1), ordered(2, "b")]


@pytest.mark.parametrize(("windows", "then"), [([ordered(0, "a")], "windows"), ([], "gates")])
def test_batches_are_compared_when_nothing_else_is_left(windows: list[BlockOrder], then: str) -> None:
    gates = [Treatment(id="b", kind="configuration", configuration=found(1).configuration)]
    made = agenda(Plan(NextBlocks(windows=windows, gates=gates)), ordered(1), isolation="live")
    made.heard(ran())
    answer = made.answer()
    assert (answer.then, answer.gates, made.done) == (then, gates, True)


@pytest.mark.parametrize(("profile", "then"), [(True, "profile"), (False, "gates")])
def test_a_fresh_launch_compares_batches_at_its_end(profile: bool, then: str) -> None:
    gates = [Treatment(id="b", kind="configuration", configuration=found(1).configuration)]
    made = agenda(Plan(), ordered(1), profile=profile, gates=gates)
    made.heard(ran())
    answer = made.answer()
    assert (answer.then, answer.gates) == (then, gates)


def test_a_live_launch_is_stopped() -> None:
    made = agenda(Plan(NextBlocks()), ordered(1), isolation="live")
    made.heard(ran())
    assert (made.answer().then, made.done) == ("stop", True)


@pytest.mark.parametrize(("status", "running"), [("failed", ordered(1)), ("short", None), ("counted", None)])
def test_a_block_that_failed_is_the_one_that_ran(status: str, running: BlockOrder | None) -> None:
    made = agenda(Plan(), ordered(1), isolation="live")
    made.heard(ran(status))
    assert isinstance(ran(status), Block) and made.running == running
    assert not made.done


@pytest.mark.parametrize("records", [(found(1), FirstStep(launch=1, t_ns=0)), (FirstStep(launch=1, t_ns=0), found(1))])
def test_a_scout_is_done_once_it_has_seen_loader_and_first_step(records: tuple[AnyRecord, AnyRecord]) -> None:
    made = agenda(Plan(), purpose="scout")
    for record in records:
        assert isinstance(record, (LoaderChosen, FirstStep)) and not made.done
        made.heard(record)
    assert made.done


def test_only_a_scout_is_done_with_the_first_step() -> None:
    made = agenda(Plan(), ordered(1))
    made.heard(found(1))
    made.heard(FirstStep(launch=1, t_ns=0))
    assert not made.done
