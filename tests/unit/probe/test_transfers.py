from __future__ import annotations

import pytest
import torch

from pindiag.probe.transfers import Tally, names_accelerator, says_non_blocking, with_non_blocking

CUDA = torch.device("cuda", 0)


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        (("cuda",), {}, True),
        (("cuda:1", torch.float16), {}, True),
        ((CUDA,), {}, True),
        ((0,), {}, True),
        ((torch.float16,), {"device": "cuda"}, True),
        (("cpu",), {}, False),
        ((torch.device("cpu"),), {}, False),
        (("meta",), {}, False),
        ((torch.float16,), {}, False),
        ((torch.zeros(1),), {}, False),
        ((), {"other": torch.zeros(1)}, False),
        ((), {"dtype": torch.float16}, False),
        ((), {}, False),
    ],
)
def test_a_call_names_an_accelerator(args, kwargs, expected):
    assert names_accelerator(args, kwargs) is expected


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        (("cuda",), {}, False),
        (("cuda",), {"non_blocking": True}, True),
        (("cuda", torch.float16, True), {}, True),
        ((torch.float16, True, False), {}, True),
        ((torch.float16, False, True), {}, False),
        ((None, True), {}, True),
    ],
)
def test_non_blocking_is_read_in_every_form(args, kwargs, expected):
    assert says_non_blocking(args, kwargs) is expected


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        (("cuda",), {}),
        (("cuda",), {"non_blocking": True}),
        (("cuda", torch.float16, False, True), {}),
        ((), {"device": "cuda", "copy": True}),
    ],
)
def test_non_blocking_is_switched_in_every_form(args, kwargs, value):
    new_args, new_kwargs = with_non_blocking(args, kwargs, value)
    assert says_non_blocking(new_args, new_kwargs) is value
    assert len(new_args) == len(args)
    assert {**new_kwargs, "non_blocking": None} == {**kwargs, "non_blocking": None}


@pytest.mark.parametrize(
    ("calls", "expected"), [([], None), ([(4, 4)], True), ([(4, 0)], False), ([(4, 4), (4, 0)], "mixed")]
)
def test_what_the_script_says_of_non_blocking(calls, expected):
    tally = Tally()
    tally.transfers = {str(place): [count, 0, 0, 0, blocking] for place, (count, blocking) in enumerate(calls)}
    assert tally.non_blocking() == expected
