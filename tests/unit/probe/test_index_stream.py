from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, RandomSampler

from pindiag.probe.epochs import Epochs, note_set_epoch
from pindiag.probe.index_stream import IndexStream

DATA = torch.arange(10)
BATCHES = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def stream_of(loader, *, endless):
    note_set_epoch(loader)
    return IndexStream(Epochs(loader._index_sampler, loader), endless=endless)


def stream(*, endless=True, **arguments):
    return stream_of(DataLoader(DATA, **{"batch_size": 4, **arguments}), endless=endless)


def take(stream, count):
    return list(itertools.islice(stream, count))


def test_an_endless_stream_goes_on_with_the_next_epoch():
    found = stream()
    assert take(found, 4) == [*BATCHES, BATCHES[0]]
    assert (found.ended, found.first_epoch, len(found)) == (1, 3, 3)


def test_the_first_epochs_length_holds_what_iterators_handed_on():
    found = stream()
    take(found, 2)
    found.delivered()
    found.put_back()
    assert take(found, 3) == [*BATCHES[1:], BATCHES[0]]
    assert found.first_epoch == 3


def test_a_natural_stream_waits_for_the_next_epoch():
    found = stream(endless=False)
    assert len(list(found)) == len([found.delivered() for _ in range(3)]) == 3
    assert found.epoch_is_over
    assert next(found, "over") == "over"
    found.resume()
    assert not found.epoch_is_over
    assert next(found) == BATCHES[0]


def test_an_epoch_is_not_over_while_its_batches_are_in_flight():
    found = stream(endless=False)
    list(found)
    assert not found.epoch_is_over
    assert [found.delivered() for _ in range(3)] == [4, 4, 2]
    assert found.epoch_is_over


def test_an_epoch_is_not_over_while_batches_wait_to_be_given_again():
    found = stream(endless=False)
    list(found)
    found.put_back()
    assert not found.epoch_is_over
    assert list(found) == BATCHES


def test_a_stream_takes_over_an_epoch_that_has_begun():
    loader = DataLoader(DATA, batch_size=4)
    begun = iter(loader.batch_sampler)
    found = IndexStream(Epochs(loader.batch_sampler, loader, begun=True), begun, endless=True)
    assert take(found, 4) == [*BATCHES, BATCHES[0]]


def test_a_stream_that_becomes_endless_after_its_end_goes_on():
    found = stream(endless=False)
    list(found)
    found.endless = True
    assert next(found) == BATCHES[0]


def test_an_empty_sampler_ends():
    assert list(stream(sampler=[])) == []


def test_a_batch_that_is_passed_over_is_delivered():
    found = stream(endless=False)
    assert [found.skip() for _ in range(4)] == [True, True, True, False]
    assert found.epoch_is_over


def test_batches_that_arrive_out_of_order_are_told_by_those_that_wait():
    found = stream(sampler=[0, 1, 2, 3, 4, 5], batch_size=2, endless=True)
    given = take(found, 3)
    assert found.delivered(waiting={0, 2}) == 2
    found.put_back()
    assert take(found, 2) == [given[0], given[2]]


@given(
    rows=st.integers(0, 20),
    size=st.one_of(st.none(), st.integers(1, 7)),
    steps=st.lists(st.tuples(st.sampled_from(["draw", "deliver", "switch"]), st.integers(1, 5)), max_size=40),
)
def test_whatever_is_drawn_is_delivered_once_and_in_order(rows, size, steps):
    loader = DataLoader(range(rows), batch_size=size)
    expected = itertools.cycle(list(loader._index_sampler)) if rows else iter(())
    found = stream_of(loader, endless=True)
    flying = []
    for step, count in steps:
        if step == "draw":
            flying += take(found, count)
        elif step == "switch":
            flying.clear()
            found.put_back()
        else:
            for index in flying[:count]:
                assert index == next(expected)
                assert found.delivered() == (None if size is None else len(index))
            del flying[:count]


# ---------------------------------------------------------------------------------- as torch's own iterators would


def own_epochs(loader, count):
    return [[batch.tolist() for batch in loader] for _ in range(count)]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("own_generator", [False, True])
def test_epochs_draw_what_the_loaders_own_iterators_draw(workers, persistent, own_generator):
    def made():
        torch.manual_seed(3)
        generator = torch.Generator().manual_seed(4) if own_generator else None
        return DataLoader(
            DATA,
            batch_size=4,
            shuffle=True,
            num_workers=workers,
            persistent_workers=persistent and workers > 0,
            generator=generator,
        )

    expected = [batch for epoch in own_epochs(made(), 3) for batch in epoch]
    after = torch.rand(1)
    loader = made()
    assert take(stream_of(loader, endless=True), 9) == expected
    assert torch.rand(1) == after


def test_the_seed_that_the_scripts_own_iterator_would_have_had_is_the_next_one():
    torch.manual_seed(3)
    expected = iter(DataLoader(DATA))._base_seed
    torch.manual_seed(3)
    loader = DataLoader(DATA)
    epochs = Epochs(loader._index_sampler, loader)
    epochs.begin()
    assert torch.empty((), dtype=torch.int64).random_(generator=epochs.seeds).item() == expected


def distributed():
    return DistributedSampler(DATA, num_replicas=1, rank=0, shuffle=True)


def by_hand(epochs):
    sampler = distributed()
    for epoch in epochs:
        sampler.set_epoch(epoch)
        yield from BatchSampler(sampler, 4, False)


def test_a_loop_that_never_ends_its_epoch_has_its_sampler_told_of_the_next_one():
    sampler = distributed()
    loader = DataLoader(DATA, batch_size=4, sampler=sampler)
    note_set_epoch(loader)
    sampler.set_epoch(5)
    assert take(stream_of(loader, endless=True), 9) == list(by_hand([5, 6, 7]))


@pytest.mark.parametrize("ahead", [0, 2])
def test_a_script_that_counts_its_epochs_and_tells_its_sampler_agrees(ahead):
    sampler = distributed()
    loader = DataLoader(DATA, batch_sampler=BatchSampler(sampler, 4, False))
    note_set_epoch(loader)
    sampler.set_epoch(0)
    found = stream_of(loader, endless=True)
    got = take(found, ahead)
    for epoch in range(4):
        sampler.set_epoch(epoch=epoch)
        got += take(found, 3)
    assert got[:12] == list(by_hand(range(4)))


def test_a_sampler_that_was_never_told_is_left_alone():
    sampler = distributed()
    assert take(stream_of(DataLoader(DATA, batch_size=4, sampler=sampler), endless=True), 6) == list(by_hand([0, 0]))


def test_a_new_sampler_does_not_inherit_what_another_was_told():
    for _ in range(50):
        sampler = distributed()
        loader = DataLoader(DATA, batch_size=4, sampler=sampler)
        found = stream_of(loader, endless=True)
        take(found, 4)
        assert sampler.epoch == 0
        sampler.set_epoch(7)
        del found, loader, sampler


def test_random_samplers_without_set_epoch_are_no_trouble():
    assert sorted(sum(take(stream(sampler=RandomSampler(DATA)), 3), [])) == list(range(10))


def test_an_epoch_that_was_counted_to_its_end_is_over_once_the_loop_comes_back():
    found = stream(endless=False)
    assert take(found, 3) == BATCHES
    for _ in range(3):
        found.delivered()
    assert not found.epoch_is_over, "nobody has asked for one more"
    found.look_ahead()
    assert found.epoch_is_over
    found.resume()
    assert list(found) == BATCHES


def test_looking_ahead_in_the_middle_loses_nothing():
    found = stream(endless=False)
    assert take(found, 1) == BATCHES[:1]
    found.look_ahead()
    found.delivered()
    found.look_ahead()
    found.look_ahead()
    assert not found.epoch_is_over
    assert list(found) == BATCHES[1:]
