"""Another worker's death while a failure is written down must not cost the record."""

import os
import signal

import pytest

from pindiag.probe.launch import undisturbed


def test_a_death_in_between_raises_nothing_and_the_handler_comes_back():
    def handler(*_):
        raise RuntimeError("DataLoader worker is killed")

    before = signal.signal(signal.SIGCHLD, handler)
    try:
        with undisturbed():
            os.kill(os.getpid(), signal.SIGCHLD)
        assert signal.getsignal(signal.SIGCHLD) is handler
        with pytest.raises(RuntimeError, match="is killed"):
            os.kill(os.getpid(), signal.SIGCHLD)
    finally:
        signal.signal(signal.SIGCHLD, before)
