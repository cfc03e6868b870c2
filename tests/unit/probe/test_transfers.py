from __future__ import annotations

import importlib
import operator
import threading
import warnings

import pytest
import torch

from pindiag.probe import pinning
from pindiag.probe.asked import (
    copies_non_blocking,
    names_accelerator,
    says_non_blocking,
    waits_for_host,
    with_non_blocking,
)
from pindiag.probe.capture import Capture, storage_of
from pindiag.probe.lazy import LazySync
from pindiag.probe.tally import Tally
from tests.unit.probe.pretended import DEVICE, Elsewhere, hooks, installed

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
    tally.transfers = {(str(place), "to"): [count, 0, 0, 0, blocking] for place, (count, blocking) in enumerate(calls)}
    tally.transfers["0", "copy_"] = [7, 0, 0, 0, 3]  # no treatment changes these
    assert tally.non_blocking() == expected


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [((1,), {}, False), ((1, True), {}, True), ((1,), {"non_blocking": True}, True), ((1, False), {}, False)],
)
def test_non_blocking_of_copies_into_a_tensor(args, kwargs, expected):
    assert copies_non_blocking(args, kwargs) is expected


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        (("cpu",), {}, True),
        ((torch.device("cpu"), torch.float16), {}, True),
        ((torch.float16,), {"device": "cpu"}, True),
        ((torch.zeros(1),), {}, True),
        (("cpu",), {"non_blocking": True}, False),
        (("cuda",), {}, False),
        ((torch.float16,), {}, False),
        ((0,), {}, False),
    ],
)
def test_a_call_waits_for_the_host(args, kwargs, expected):
    assert waits_for_host(args, kwargs) is expected


def elsewhere(*values):
    return torch.tensor(values).to(DEVICE)


def test_moving_there_is_a_transfer_and_back_is_a_wait():
    with hooks() as transfers:
        moved = elsewhere(1.0, 2.0)
        moved.cpu()
        moved.to("cpu")
        moved.to(DEVICE)
    (there,) = transfers.tally.transfer_sites()
    assert (there["calls"], there["bytes"], there["non_blocking_calls"]) == (1, 8, 0)
    assert there["location"].startswith(__file__)
    waits = {site["kind"]: site for site in transfers.tally.sync_sites()}
    assert {kind: site["calls"] for kind, site in waits.items()} == {"cpu": 1, "to(cpu)": 1}
    assert all(site["lazy_calls"] == 0 for site in waits.values())
    assert transfers.device == DEVICE


def test_copies_into_a_tensor_are_transfers_there_and_waits_back():
    with hooks(force=True) as transfers:
        there, here = elsewhere(1.0, 2.0), torch.zeros(2)
        transfers.tally = Tally()
        for asked in ({}, {"non_blocking": True}):
            there.copy_(here, **asked)
        here.copy_(there)
        here.copy_(torch.ones(2))
    (site,) = transfers.tally.transfer_sites()
    assert (site["kind"], site["calls"], site["bytes"], site["non_blocking_calls"]) == ("copy_", 2, 16, 1)
    assert site["location"].startswith(__file__)
    (wait,) = transfers.tally.sync_sites()
    assert (wait["kind"], wait["calls"]) == ("copy_", 1)
    assert transfers.device == DEVICE


@pytest.fixture
def can_pin(monkeypatch):
    """Pinning as on a machine with an accelerator: another tensor, or the same where it is pinned already."""
    pinned = []

    def pin_memory(tensor):
        if any(tensor is each for each in pinned):
            return tensor
        pinned.append(tensor.clone())
        return pinned[-1]

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin_memory)


@pytest.mark.parametrize("force", [None, True])
def test_where_copies_are_not_counted_they_are_made_all_the_same_and_waits_count(force):
    with hooks(force) as transfers:
        transfers.counts = False
        there = torch.ones(3).to(DEVICE)
        there.copy_(torch.zeros(3))
        assert there.to("cpu").tolist() == [0, 0, 0]
        assert transfers.tally.transfer_sites() == []
        assert [site["kind"] for site in transfers.tally.sync_sites()] == ["to(cpu)"]
        transfers.counts = True
        torch.ones(3).to(DEVICE)
        assert [site["calls"] for site in transfers.tally.transfer_sites()] == [1]


def test_what_is_counted_may_stand_for_more():
    with hooks() as transfers:
        for _ in range(4):
            torch.ones(3).to(DEVICE, non_blocking=True)
        (site,) = transfers.tally.transfer_sites(2.5)
        assert (site["calls"], site["bytes"], site["non_blocking_calls"]) == (10, 120, 10)


@pytest.mark.usefixtures("can_pin")
def test_pinning_by_hand_is_counted():
    with hooks() as transfers:
        torch.ones(4).pin_memory().pin_memory()
    (site,) = transfers.tally.pin_sites()
    assert (site["calls"], site["bytes"]) == (1, 16)
    assert site["location"].startswith(__file__)
    assert site["ms"] * 1e6 == pytest.approx(transfers.tally.pin_ns) == transfers.tally.hooked_ns


@pytest.mark.usefixtures("can_pin", "clock")
def test_pinning_of_the_loader_and_of_other_threads_is_not_by_hand():
    with hooks() as transfers:
        pinning.timed_pin(lambda batch: [tensor.pin_memory() for tensor in batch])([torch.ones(1)])
        thread = threading.Thread(target=lambda: torch.ones(1).pin_memory())
        thread.start()
        thread.join()
        assert transfers.tally.pin_sites() == []
        torch.ones(1).pin_memory()
        assert len(transfers.tally.pin_sites()) == 1


def test_pinned_memory_is_asked_for_once(monkeypatch):
    asked = []
    pinned, pageable = torch.ones(2), torch.ones(2)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: asked.append(tensor) or tensor is pinned)
    tally = Tally()
    assert [tally.is_pinned(tensor) for tensor in (pinned, pinned[1:], pageable, pageable)] == [
        True,
        True,
        False,
        False,
    ]
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("kind", "asks"),
    [
        ("nonzero", lambda there: there.nonzero()),
        ("argwhere", lambda there: there.argwhere()),
        ("unique_consecutive", lambda there: there.unique_consecutive()),
        ("masked_select", lambda there: there.masked_select(there > 1)),
        ("equal", lambda there: there.equal(there)),
    ],
)
def test_results_that_only_the_device_knows_are_waits(kind, asks):
    with hooks() as transfers:
        there = elsewhere(1.0, 2.0, 2.0)
        asks(there)
        asks(torch.ones(2))
    (site,) = transfers.tally.sync_sites()
    assert (site["kind"], site["calls"]) == (kind, 1)
    assert site["location"].startswith(__file__)


def test_results_sized_by_the_data_are_never_those_of_an_earlier_step():
    with hooks() as transfers:
        given, _ = lazily(transfers, 3, lambda number: elsewhere(*range(number + 1)).nonzero().shape[0])
        masked, _ = lazily(transfers, 3, lambda number: elsewhere(*[number, 1, 2]).nonzero().shape[0])
    assert (given, masked) == ([0, 1, 2], [2, 3, 3])
    assert all(site["lazy_calls"] == 0 for site in transfers.tally.sync_sites())


@pytest.mark.parametrize("asks", [repr, lambda there: 3.0 in there])
def test_waits_inside_torch_are_the_scripts_line(asks):
    with hooks() as transfers:
        asks(elsewhere(3.0))
    sites = transfers.tally.sync_sites()
    assert sites
    assert all(site["location"].startswith(__file__) for site in sites)


@pytest.mark.parametrize("asks", [bool, int, float, complex, operator.index])
def test_python_values_of_its_tensors_are_waits(asks):
    with hooks() as transfers:
        there, here = elsewhere(3), torch.tensor(3)
        assert asks(there) == asks(here)
    (site,) = transfers.tally.sync_sites()
    assert (site["kind"], site["calls"]) == (asks.__name__, 1)
    assert site["location"].startswith(__file__)


def test_torchs_warning_about_floats_names_the_scripts_line():
    value = (torch.ones(1, requires_grad=True) * 2).sum()
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as plain:
            warnings.simplefilter("always")
            float(value)
        with installed(), warnings.catch_warnings(record=True) as hooked:
            warnings.simplefilter("always")
            float(value)
    finally:
        torch.set_warn_always(before)
    assert [warning.filename for warning in hooked] == [warning.filename for warning in plain]
    assert [str(warning.message) for warning in hooked] == [str(warning.message) for warning in plain]
    assert [warning.lineno for warning in hooked] == [warning.lineno + 3 for warning in plain]


def branches(x):
    total = x.sum()
    if total > 0:
        x = x.to(torch.float64) * float(total)
    if x.equal(x):
        x = x[x.nonzero().flatten()]
    return x[: int(total.item())].cpu()


def compiled():
    """What torch.compile makes of a function with graph breaks at hooked calls, and the warnings it gives."""
    torch._dynamo.reset()
    counters = torch._dynamo.utils.counters
    counters.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.compile(branches, backend="eager")(torch.ones(2))
    counts = counters["frames"]["total"], sum(counters["graph_break"].values()), counters["stats"]["unique_graphs"]
    return counts, [str(warning.message) for warning in caught]


def test_a_compiled_function_is_compiled_as_without_us():
    importlib.import_module("torch._dynamo")
    compiled()  # some warnings are given once a process
    plain = compiled()
    with installed():
        assert compiled() == plain
    assert plain[0][0] > 1, "there is a call outside the graphs"


def test_what_stays_on_the_host_is_neither():
    with hooks() as transfers:
        host = torch.ones(2)
        host.to(torch.float16)
        host.cpu()
        host.sum().item()
        host.to("cpu", copy=True)
    assert (transfers.tally.transfer_sites(), transfers.tally.sync_sites()) == ([], [])


def test_capture_notes_memory_that_views_share():
    with hooks() as transfers:
        transfers.capture = Capture()
        first, second = torch.ones(4), torch.ones(4)
        first[2:].to(DEVICE)
        second.to(torch.float16)
        assert transfers.capture.devices == {storage_of(first): torch.device(DEVICE)}


def test_without_capture_nothing_is_noted():
    with hooks() as transfers:
        elsewhere(1.0)
        assert transfers.capture is None


def test_memory_of_a_sparse_tensor_has_no_one_address():
    assert storage_of(torch.ones(2, 2).to_sparse()) is None


def lazily(transfers, steps, call):
    """What a place in the source is given in each step, and how often the numbers really came back."""
    transfers.lazy = LazySync()
    before = Elsewhere.reads
    given = []
    for number in range(steps):
        transfers.lazy.next_step()
        given.append(call(number))
    return given, Elsewhere.reads - before


def test_a_place_gives_what_it_gave_in_the_first_step():
    with hooks() as transfers:
        given, reads = lazily(transfers, 4, lambda number: elsewhere(float(number)).item())
    assert (given, reads) == ([0.0] * 4, 1)
    (site,) = transfers.tally.sync_sites()
    assert (site["kind"], site["calls"], site["lazy_calls"]) == ("item", 4, 3)


def test_calls_of_one_place_are_told_apart_by_their_order_in_the_step():
    with hooks() as transfers:
        given, reads = lazily(transfers, 3, lambda number: [elsewhere(one + number).item() for one in (1, 5, 9)])
    assert (given, reads) == ([[1, 5, 9]] * 3, 3)


def test_a_loop_that_waits_for_convergence_ends():
    def converge(_):
        error, turns = elsewhere(8.0), 0
        while error.item() > 1:
            error, turns = error / 2, turns + 1
        return turns

    with hooks() as transfers:
        given, reads = lazily(transfers, 3, converge)
    assert (given, reads) == ([3] * 3, 4)


def test_a_call_more_than_before_is_real():
    with hooks() as transfers:
        given, reads = lazily(
            transfers, 3, lambda number: [elsewhere(10 * number + turn).item() for turn in range(number)]
        )
    assert (given, reads) == ([[], [10], [10, 21]], 2)


def test_without_steps_every_call_is_real():
    with hooks() as transfers:
        transfers.lazy = LazySync()
        before = Elsewhere.reads
        assert [elsewhere(number).item() for number in range(3)] == [0, 1, 2]
        assert Elsewhere.reads - before == 3


@pytest.mark.parametrize("back", [lambda there: there.cpu(), lambda there: there.to("cpu")])
def test_tensors_are_given_as_copies(back):
    def call(number):
        came = back(elsewhere(float(number), 1.0))
        came.add_(5)
        return came.tolist()

    with hooks() as transfers:
        given, reads = lazily(transfers, 3, call)
    assert (given, reads) == ([[5.0, 6.0]] * 3, 1)


def test_a_branch_on_a_tensor_is_taken_as_before():
    with hooks() as transfers:
        given, reads = lazily(transfers, 3, lambda number: "yes" if elsewhere(float(number)) > 0 else "no")
    assert (given, reads) == (["no"] * 3, 1)


def test_another_shape_or_dtype_is_real():
    shapes = [(1.0,), (1.0, 2.0), (1.0, 2.0), (1, 2)]
    with hooks() as transfers:
        given, reads = lazily(transfers, 4, lambda number: elsewhere(*shapes[number]).cpu())
    assert [(tuple(one.shape), one.dtype) for one in given] == [
        ((1,), torch.float32),
        ((2,), torch.float32),
        ((2,), torch.float32),
        ((2,), torch.int64),
    ]
    assert reads == 3


def test_what_carries_a_gradient_is_real():
    with hooks() as transfers:
        given, reads = lazily(transfers, 3, lambda number: elsewhere(float(number)).requires_grad_().cpu())
    assert reads == 3
    assert all(one.requires_grad for one in given)


def test_a_call_that_does_not_wait_is_real():
    with hooks() as transfers:
        _, reads = lazily(transfers, 3, lambda _: elsewhere(1.0).to("cpu", non_blocking=True))
    assert reads == 3
    assert transfers.tally.sync_sites() == []


@pytest.mark.parametrize("owner", [torch.cuda, torch.accelerator, torch.cuda.Stream, torch.cuda.Event])
def test_waiting_without_an_answer_is_left_out_after_the_first(monkeypatch, owner):
    waited = []
    monkeypatch.setattr(owner, "synchronize", lambda *_: waited.append(1))
    with hooks() as transfers:
        lazily(transfers, 3, lambda _: owner.synchronize())
    assert waited == [1]
    (site,) = transfers.tally.sync_sites()
    assert (site["calls"], site["lazy_calls"]) == (3, 2)


def test_events_that_nobody_waited_for_still_tell_their_distance(monkeypatch):
    """The script waits in each step and reads every other one: the first reading is made after waits that were not."""
    reached = set()

    def elapsed_time(start, end):
        if not {start, end} <= reached:
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return 1.5

    event = torch.cuda.Event
    monkeypatch.setattr(event, "synchronize", reached.add)
    monkeypatch.setattr(event, "elapsed_time", elapsed_time)

    def call(number):
        event.synchronize(0)
        event.synchronize(number)
        return event.elapsed_time(0, number) if number % 2 else None

    with hooks() as transfers:
        given, _ = lazily(transfers, 5, call)
        assert given == [None, 1.5, None, 1.5, None]
        assert reached == {0, 1}
        transfers.lazy = None
        with pytest.raises(RuntimeError, match="must be completed"):
            event.elapsed_time(0, 9)


def test_a_call_that_fails_is_remembered_as_nothing():
    with hooks() as transfers:
        transfers.lazy = LazySync()
        for _ in range(2):
            transfers.lazy.next_step()
            with pytest.raises(RuntimeError):
                elsewhere(1.0, 2.0).item()


def test_numbers_are_real_again_once_it_is_off():
    with hooks() as transfers:
        lazily(transfers, 2, lambda number: elsewhere(number).item())
        transfers.lazy = None
        assert [elsewhere(number).item() for number in (7, 8)] == [7, 8]


def test_a_lazy_layer_is_moved_as_without_us():
    with installed():
        layer = torch.nn.LazyLinear(3).to("cpu").cpu()
        assert layer(torch.ones(2, 5)).shape == (2, 3)
