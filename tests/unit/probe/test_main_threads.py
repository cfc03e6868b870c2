"""Fewer threads for one treatment, and their number back."""

from __future__ import annotations

import pytest
import torch

from pindiag.probe import device
from pindiag.probe.main_threads import MainThreads


@pytest.fixture
def given(monkeypatch):
    numbers = []
    monkeypatch.setattr(torch, "set_num_threads", numbers.append)
    monkeypatch.setattr(device, "intraop_threads", lambda: 8)
    return numbers


def test_the_number_comes_back_once(given):
    threads = MainThreads()
    for number in (None, 4, 4, None, None, 2, None):
        threads.give(number)
    assert given == [4, 4, 8, 2, 8]


def test_without_a_change_torch_is_not_asked(given):
    MainThreads().give(None)
    assert given == []
