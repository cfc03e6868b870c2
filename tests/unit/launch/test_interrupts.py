import os
import signal
import threading

import pytest

from pindiag.launch.interrupts import Interrupts

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", SIGNALS)
def test_signals_are_remembered_and_raise_nothing(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in SIGNALS]
    with Interrupts() as interrupts:
        assert interrupts.reason is None
        os.kill(os.getpid(), number)
        first = interrupts.reason
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupts.reason == first
    assert first == ("interrupted by Ctrl-C" if number is signal.SIGINT else f"ended by {number.name}")
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_under_nohup_a_hang_up_is_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interrupts.reason is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_in_another_thread_nothing_is_changed() -> None:
    seen = []

    def enter() -> None:
        with Interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
