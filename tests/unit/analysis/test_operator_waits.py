"""Waits by operator, on made-up events and on a recording."""

from pathlib import Path

from pindiag.analysis.main_thread import MainThread
from pindiag.analysis.operator_waits import OperatorWait, operator_waits
from pindiag.analysis.trace import window
from pindiag.store import read_trace

from .test_main_thread import PIN, calls, one_step
from .test_trace import Event

H200 = Path(__file__).parents[2] / "data" / "h200"


def waits(events):
    start, end, _ = window(events)
    return operator_waits(events, MainThread(events, start, end))


def test_item_is_named_and_the_transfer_is_not_a_wait():
    assert waits(one_step()) == [OperatorWait("aten::item", 1, 70)]


def test_the_outermost_operator_is_named_and_else_the_call():
    events = [
        *one_step(),
        Event("cpu_op", "aten::index", 600, 30),
        Event("cpu_op", "aten::nonzero", 602, 20),
        calls("cudaStreamSynchronize", 605, 10, 21),
        calls("cudaStreamSynchronize", 617, 3, 22),
        calls("cudaDeviceSynchronize", 970, 25, 23),
        calls("cudaStreamSynchronize", 600, 90, 24, PIN),
    ]
    assert waits(events) == [
        OperatorWait("aten::item", 1, 70),
        OperatorWait("cudaDeviceSynchronize", 1, 25),
        OperatorWait("aten::index", 1, 13),
    ]


def test_h200_transfers_are_no_waits():
    events = read_trace(H200 / "trace_pin0_nb0.json.gz")
    assert "aten::to" not in {wait.name for wait in waits(events)}
