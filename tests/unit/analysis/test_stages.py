from types import SimpleNamespace

import pytest

from pindiag.analysis.stages import BEFORE_HAND_PINS, OVERLAP, Totals
from pindiag.model import PinThread


def block(steps=10, seconds=1.0, missing=None, **fields):
    usual = {
        "wait_ms": 500.0,
        "wait_cpu_ms": 50.0,
        "transfer_ms": 100.0,
        "synchronise_ms": 20.0,
        "optimizer_ms": 80.0,
        "hand_pin_ms": 0.0,
        "pin_thread": None,
    }
    return SimpleNamespace(steps=steps, seconds=seconds, missing=missing or {}, **(usual | fields))


def test_long_blocks_weigh_more():
    totals = Totals([block(steps=10, seconds=1.0), block(steps=30, seconds=1.0, wait_ms=100.0)])
    assert totals.step_ms == pytest.approx(50)
    assert totals.stages().wait == pytest.approx(15)


def test_an_unmeasured_stage_is_none_and_its_time_is_the_scripts():
    totals = Totals([block(missing={"transfer_ms": "no hook"})])
    assert totals.stages().transfer is None
    assert totals.missing("transfer_ms") == "no hook"
    assert totals.stages().script == pytest.approx(100 - 50 - 2 - 8)


def test_pinning_by_hand_is_a_stage_of_its_own():
    stages = Totals([block(hand_pin_ms=60.0)]).stages()
    assert (stages.pin, stages.script) == (pytest.approx(6), pytest.approx(100 - 50 - 10 - 2 - 8 - 6))


def test_records_from_before_pinning_by_hand_was_measured_say_so():
    totals = Totals([block(hand_pin_ms=None)])
    assert totals.stages().pin is None
    assert totals.missing("hand_pin_ms") == BEFORE_HAND_PINS


@pytest.mark.parametrize(("wait_ms", "script"), [(980.0, 0.0), (2000.0, None)])
def test_stages_sum_to_the_step_or_else_what_they_leave_is_not_known(wait_ms, script):
    none_other = {"transfer_ms": 0.0, "synchronise_ms": 0.0, "optimizer_ms": 50.0, "hand_pin_ms": 0.0}
    totals = Totals([block(wait_ms=wait_ms, **none_other)])
    assert totals.stages().script == script
    assert totals.missing("script_ms") == (OVERLAP if script is None else None)


def test_pin_thread_shares():
    thread = PinThread(batches=10, receive_ms=100.0, pin_ms=400.0, idle_ms=300.0, in_main_thread=False)
    totals = Totals([block(pin_thread=thread), block()])
    assert totals.pin_thread().pin == pytest.approx(40)
    assert totals.pin_busy_share == pytest.approx(0.7)
    assert totals.pin_in_main_thread is False


def test_the_main_thread_pins_only_while_it_pins():
    thread = PinThread(batches=10, receive_ms=0.0, pin_ms=400.0, idle_ms=0.0, in_main_thread=True)
    assert Totals([block(pin_thread=thread)]).pin_busy_share == pytest.approx(0.4)


def test_without_blocks_nothing_is_known():
    totals = Totals([])
    assert (totals.step_ms, totals.stages().script, totals.pin_thread(), totals.pin_busy_share) == (None,) * 4
    assert totals.missing("wait_ms") == "no block was counted"
