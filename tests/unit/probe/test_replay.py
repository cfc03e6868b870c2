from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch

from pindiag.probe import replay
from pindiag.probe.replay import CHANGED_IN_PLACE, NOTHING_MOVED, NOTHING_TO_PIN_FOR, REPLAYED, WATCHED, Replay
from pindiag.probe.transfers import Transfers
from tests.unit.probe.pretended import DEVICE, Elsewhere, hooks


def batch(number):
    return {"x": torch.full((4, 2), float(number)), "lengths": torch.full((4,), number), "names": [str(number)]}


def step(given):
    """A training step that moves x alone."""
    return given["x"].to(DEVICE)


def collected(transfers, kind, make=batch, run=lambda given: None, count=REPLAYED):
    made = Replay(transfers, kind)
    for number in range(count):
        given = make(number)
        made.collect(given, samples=number + 1)
        run(given)
    return made


def begun(*args, **kwargs):
    made = collected(*args, **kwargs)
    assert made.begin() is None
    return made


def test_batches_take_turns_with_their_samples():
    made = begun(Transfers(None), "pageable")
    turns = [made.serve() for _ in range(REPLAYED + 2)]
    assert [turn.samples for turn in turns] == [*range(1, REPLAYED + 1), 1, 2]
    assert [int(turn.data["x"][0, 0]) for turn in turns] == [*range(REPLAYED), 0, 1]
    assert turns[0].data["names"] == ["0"]
    assert made.notes == []
    assert all(turn.own_ns > 0 for turn in turns)


def test_it_is_full_after_eight_batches_and_keeps_no_more():
    made = collected(Transfers(None), "pageable", count=REPLAYED - 1)
    assert not made.full
    for number in range(5):
        made.collect(batch(100 + number), 1)
    assert made.full
    made.begin()
    assert [int(made.serve().data["lengths"][0]) for _ in range(REPLAYED)] == [*range(REPLAYED - 1), 100]


def test_what_the_real_step_does_to_a_batch_is_not_replayed():
    made = begun(Transfers(None), "pageable", run=lambda given: given["x"].zero_())
    assert [float(made.serve().data["x"].sum()) for _ in range(3)] == [0, 8, 16]


def test_tensors_are_fresh_objects_over_the_same_memory():
    made = begun(Transfers(None), "pageable")
    first = made.serve().data["x"]
    for _ in range(REPLAYED - 1):
        made.serve()
    again = made.serve().data["x"]
    assert again is not first
    assert again.data_ptr() == first.data_ptr()


def test_what_the_script_hangs_on_a_tensor_is_not_seen_again():
    made = begun(Transfers(None), "pageable")
    first = made.serve().data["x"]
    first.requires_grad_()
    (first * 2).sum().backward()
    first.mark = "seen"
    with torch.no_grad():
        first.t_()
    for _ in range(REPLAYED - 1):
        made.serve()
    again = made.serve().data["x"]
    assert (again.requires_grad, again.grad, hasattr(again, "mark")) == (False, None, False)
    assert again.shape == (4, 2)


def test_what_the_loader_hung_on_a_tensor_is_there():
    def marked(number):
        given = batch(number)
        given["x"].mark = number
        given["x"].requires_grad_()
        return given

    made = begun(Transfers(None), "pageable", make=marked)
    made.serve()
    again = made.serve().data["x"]
    assert (again.mark, again.requires_grad, again.is_leaf) == (1, True, True)


@pytest.mark.parametrize("late", [0, 1])
def test_a_batch_changed_in_place_is_never_seen_again(late):
    made = begun(Transfers(None), "pageable")
    given = []
    for _ in range(4 * REPLAYED):
        turn = made.serve().data["x"]
        assert len(set(turn.flatten().tolist())) == 1
        assert float(turn[0, 0]) < REPLAYED
        given.append(turn)
        if len(given) > late:
            given[-1 - late].add_(100)
    assert made.notes == [CHANGED_IN_PLACE]


def test_batches_that_are_not_changed_are_not_copied():
    made = begun(Transfers(None), "pageable")
    assert len({made.serve().data["x"].data_ptr() for _ in range(3 * REPLAYED)}) == REPLAYED
    assert made.notes == []


def test_a_change_to_all_of_them_long_after_is_seen_too():
    made = begun(Transfers(None), "pageable")
    kept = [made.serve().data["x"] for _ in range(REPLAYED)]
    for tensor in kept:
        tensor.add_(1)
    addresses = {made.serve().data["x"].data_ptr() for _ in range(REPLAYED)}
    assert made.notes == [CHANGED_IN_PLACE]
    assert addresses.isdisjoint(tensor.data_ptr() for tensor in kept)


def test_what_the_script_keeps_outlives_the_replay():
    made = begun(Transfers(None), "pageable")
    kept = made.serve().data["x"]
    made.serve()
    other = made.serve().data["x"]
    freed = weakref.ref(other.untyped_storage())
    made.close()
    assert float(kept.sum()) == 0
    assert freed() is not None
    del other
    gc.collect()
    assert freed() is None


def test_batches_are_let_go_of_once_enough_are_collected():
    made = Replay(Transfers(None), "pageable")
    alive = []
    for number in range(REPLAYED):
        given = batch(number)
        alive.append(weakref.ref(given["x"]))
        made.collect(given, 4)
        del given
    gc.collect()
    assert sum(reference() is not None for reference in alive) == 2
    made.begin()
    gc.collect()
    assert sum(reference() is not None for reference in alive) == 0


def test_copies_lie_in_ordinary_memory():
    def shared(number):
        given = batch(number)
        given["x"].share_memory_()
        return given

    made = begun(Transfers(None), "pageable", make=shared)
    assert not made.serve().data["x"].is_shared()


def test_a_batch_that_cannot_be_copied_is_a_reason():
    class Once:
        def __init__(self):
            self.x = torch.ones(2)

        def __copy__(self):
            raise RuntimeError("only one of me")

    made = Replay(Transfers(None), "pageable")
    made.collect(Once(), 2)
    made.collect(Once(), 2)
    assert made.full
    assert made.begin() == "a batch (Once) cannot be copied: only one of me"


def test_a_container_that_changes_what_it_is_given_is_a_reason():
    class Casting(dict):
        def __setitem__(self, name, value):
            super().__setitem__(name, value.double())

    made = Replay(Transfers(None), "pageable")
    made.collect(Casting(x=torch.ones(2)), 2)
    assert made.begin() == "a batch (Casting) cannot be copied: it does not hold the tensors that it is given"


def test_nothing_collected_is_a_reason():
    assert Replay(Transfers(None), "device").begin() == "no batch was collected"


def test_pinned_memory_without_an_accelerator_is_a_reason():
    made = collected(Transfers(None), "pinned")
    assert made.begin() == NOTHING_TO_PIN_FOR


def test_pinned_batches_are_pinned_copies(monkeypatch):
    pinned = []

    def pin(tensor):
        pinned.append(tensor.clone())
        return pinned[-1]

    monkeypatch.setattr(replay, "_pin", pin)
    transfers = Transfers(None)
    transfers.device = "cuda:0"
    made = begun(transfers, "pinned")
    assert len(pinned) == 2 * REPLAYED
    assert made.serve().data["x"].data_ptr() == pinned[0].data_ptr()


def test_memory_that_cannot_be_had_is_a_reason(monkeypatch):
    def pin(_):
        raise RuntimeError("CUDA error: out of memory\nmore about it")

    monkeypatch.setattr(replay, "_pin", pin)
    transfers = Transfers(None)
    transfers.device = "cuda:0"
    made = collected(transfers, "pinned")
    assert made.begin() == "the batches cannot be held in pinned memory: CUDA error: out of memory"


def test_a_script_without_accelerator_gets_host_batches():
    made = begun(Transfers(None), "device")
    assert made.serve().data["x"].is_cpu
    assert made.notes == []


def test_only_what_was_seen_moving_lies_on_the_device():
    with hooks() as transfers:
        made = begun(transfers, "device", run=step)
        given = made.serve().data
        assert (given["x"].device, given["lengths"].device) == (torch.device(DEVICE), torch.device("cpu"))
        assert given["x"].dtype == torch.float32
        assert given["x"].to(DEVICE) is given["x"]
        assert made.notes == []


@pytest.mark.parametrize("needs_host", [lambda x: x.numpy(), np.asarray, lambda x: x[0].numpy()])
def test_what_only_the_host_can_give_stays_there(needs_host):
    def run(given):
        step(given)
        given["lengths"].to(DEVICE)
        needs_host(given["x"])

    with hooks() as transfers:
        given = begun(transfers, "device", run=run).serve().data
        assert (given["x"].device.type, given["lengths"].device.type) == ("cpu", "lazy")
        needs_host(given["x"])


def test_what_the_script_pins_itself_stays_on_the_host(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "pin_memory", torch.Tensor.clone)
    with hooks() as transfers:
        made = begun(transfers, "device", run=lambda given: (step(given), given["x"].pin_memory().to(DEVICE)))
        assert made.serve().data["x"].is_cpu


def test_a_cast_on_the_way_is_left_to_the_script():
    with hooks() as transfers:
        made = begun(transfers, "device", run=lambda given: given["x"].to(DEVICE, torch.float16))
        given = made.serve().data["x"]
        assert given.dtype == torch.float32
        assert given.to(DEVICE, torch.float16).dtype == torch.float16


def test_what_is_copied_into_a_tensor_of_the_device_moves():
    with hooks() as transfers:
        static = torch.zeros(4, 2).to(DEVICE)
        made = begun(transfers, "device", run=lambda given: static.copy_(given["x"], non_blocking=True))
        assert made.serve().data["x"].device.type == "lazy"


def test_what_becomes_a_meta_tensor_does_not():
    with hooks() as transfers:
        made = begun(transfers, "device", run=lambda given: torch.empty(4, 2, device="meta").copy_(given["x"]))
        assert made.serve().data["x"].is_cpu


def test_what_is_copied_within_the_host_does_not():
    with hooks() as transfers:
        torch.ones(1).to(DEVICE)
        static = torch.zeros(4, 2)
        made = begun(transfers, "device", run=lambda given: static.copy_(given["x"]))
        assert made.notes == [NOTHING_MOVED]


def test_a_view_counts_for_its_batch():
    with hooks() as transfers:
        made = begun(transfers, "device", run=lambda given: given["x"][1:].to(DEVICE))
        assert made.serve().data["x"].device.type == "lazy"


def test_a_loop_that_fetches_ahead_is_followed():
    with hooks() as transfers:
        made = Replay(transfers, "device")
        waiting = None
        for number in range(REPLAYED):
            given = batch(number)
            made.collect(given, 4)
            if waiting is not None:
                step(waiting)
            waiting = given
        assert made.begin() is None
        assert made.serve().data["x"].device.type == "lazy"


def test_a_loop_that_fetches_many_ahead_is_waited_for():
    with hooks() as transfers:
        elsewhere = torch.ones(1).to(DEVICE)
        made, waiting = Replay(transfers, "device"), []
        while not made.full:
            waiting.append(batch(len(waiting)))
            made.collect(waiting[-1], 4)
            if len(waiting) == 20:
                moved = [step(given) for given in waiting]
        assert len(waiting) == 21
        assert {tensor.device for tensor in moved} == {elsewhere.device}
        assert made.begin() is None
        assert made.serve().data["x"].device.type == "lazy"


def test_a_loop_whose_batches_never_move_is_not_waited_for_forever():
    with hooks() as transfers:
        torch.ones(1).to(DEVICE)
        made = collected(transfers, "device", count=WATCHED - 1)
        assert not made.full
        made.collect(batch(0), 4)
        assert made.full


def test_freed_memory_that_another_tensor_got_is_not_the_batchs():
    with hooks() as transfers:
        elsewhere = torch.ones(1).to(DEVICE)
        made = Replay(transfers, "device")
        for number in range(REPLAYED):
            given = batch(number)
            # as if the allocator gave a temporary tensor the place of a batch to come
            transfers.capture.note(given["lengths"], elsewhere)
            made.collect(given, 4)
            step(given)
        assert made.begin() is None
        assert made.serve().data["lengths"].is_cpu


def test_a_script_that_moves_nothing_by_hooked_calls_is_told():
    with hooks() as transfers:
        torch.ones(1).to(DEVICE)
        made = begun(transfers, "device")
        assert made.notes == [NOTHING_MOVED]
        assert made.serve().data["x"].is_cpu


def test_changes_in_place_on_the_device_are_seen():
    with hooks() as transfers:
        made = begun(transfers, "device", run=step)
        for _ in range(3 * REPLAYED):
            moved = made.serve().data["x"].to(DEVICE)
            assert isinstance(moved, Elsewhere)
            assert float(moved.host.max()) < REPLAYED
            moved.add_(100)
        assert made.notes == [CHANGED_IN_PLACE]


def test_what_the_replay_moves_is_no_transfer_of_the_scripts():
    with hooks() as transfers:
        made = collected(transfers, "device", run=step)
        calls = sum(site["calls"] for site in transfers.tally.transfer_sites())
        made.begin()
        assert calls == REPLAYED == sum(site["calls"] for site in transfers.tally.transfer_sites())


def test_capture_is_on_while_collecting_only():
    transfers = Transfers(None)
    made = collected(transfers, "device")
    assert transfers.capture is not None
    made.begin()
    assert transfers.capture is None


def test_the_probes_own_way_to_move_is_bound_before_the_hooks():
    assert replay._to is torch.Tensor.to
