from __future__ import annotations

import inspect
import itertools

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, SequentialSampler

from pindiag.probe import loader
from pindiag.probe.loader import IndexStream, Watch, changed_arguments, clone

DATA = torch.arange(10)
SIGNATURE = inspect.signature(DataLoader.__init__)


def batches(batch_size=4):
    return BatchSampler(SequentialSampler(DATA), batch_size, False)


def take(stream, count):
    return list(itertools.islice(stream, count))


def test_an_endless_stream_goes_on_with_the_next_epoch():
    stream = IndexStream(batches(), endless=True)
    assert take(stream, 4) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9], [0, 1, 2, 3]]
    assert (stream.epochs, stream.first_epoch, len(stream)) == (1, 3, 3)


def test_a_natural_stream_waits_for_the_next_epoch():
    stream = IndexStream(batches(), endless=False)
    assert len(list(stream)) == len([stream.delivered() for _ in range(3)]) == 3
    assert stream.epoch_is_over
    assert next(stream, "over") == "over"
    stream.resume()
    assert not stream.epoch_is_over
    assert next(stream) == [0, 1, 2, 3]


def test_an_epoch_is_not_over_while_its_batches_are_in_flight():
    stream = IndexStream(batches(), endless=False)
    list(stream)
    assert not stream.epoch_is_over
    assert [stream.delivered() for _ in range(3)] == [4, 4, 2]
    assert stream.epoch_is_over


def test_a_stream_that_takes_over_does_not_know_the_batches_before_it():
    began = iter(batches())
    next(began)
    stream = IndexStream(batches(), iterator=began, drawn=1, endless=True)
    assert next(stream) == [4, 5, 6, 7]
    assert [stream.delivered(), stream.delivered()] == [None, 4]


def test_a_stream_that_becomes_endless_after_its_end_goes_on():
    stream = IndexStream(batches(), endless=False)
    list(stream)
    stream.endless = True
    assert next(stream) == [0, 1, 2, 3]


def test_set_epoch_is_seen_where_an_epoch_begins():
    sampler = DistributedSampler(DATA, num_replicas=1, rank=0, shuffle=True)
    stream = IndexStream(sampler, endless=True)
    first = take(stream, 10)
    sampler.set_epoch(1)
    second = take(stream, 10)
    sampler.set_epoch(0)
    assert take(stream, 10) == first != second


def test_an_empty_sampler_ends():
    assert list(IndexStream([], endless=True)) == []


def identity(sampler):
    return sampler


def test_a_clone_changes_only_itself():
    class Own(DataLoader):
        pass

    original = Own(DATA, batch_size=4)
    before = dict(original.__dict__)
    twin, applied, refused = clone(original, {"num_workers": 2, "batch_size": 5, "pin_memory": True}, identity)
    assert original.__dict__ == before
    assert (type(twin), twin.num_workers, twin.prefetch_factor, twin.batch_size, twin.pin_memory) == (
        Own,
        2,
        2,
        5,
        True,
    )
    assert list(twin.batch_sampler) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert (set(applied), refused) == ({"num_workers", "batch_size", "pin_memory"}, {})


def test_no_workers_take_everything_with_them_that_needs_workers():
    original = DataLoader(
        DATA, num_workers=2, persistent_workers=True, prefetch_factor=4, timeout=9, multiprocessing_context="spawn"
    )
    twin = clone(original, {"num_workers": 0}, identity).loader
    assert (twin.persistent_workers, twin.prefetch_factor, twin.timeout, twin.multiprocessing_context) == (
        False, None, 0, None,
    )  # fmt: skip
    assert len(list(twin)) == 10


@pytest.mark.parametrize(
    ("arguments", "changes", "reason"),
    [
        ({"batch_sampler": [[1], [2]]}, {"batch_size": 4}, "list"),
        ({"batch_size": None}, {"batch_size": 4}, "does not make batches"),
        ({}, {"prefetch_factor": 4}, "num_workers > 0"),
        ({}, {"num_workers": 0, "persistent_workers": True}, "num_workers > 0"),
    ],
)
def test_changes_that_cannot_be_made_are_refused(arguments, changes, reason):
    _, applied, refused = clone(DataLoader(DATA, **arguments), changes, identity)
    (name,) = refused
    assert reason in refused[name]
    assert applied.keys() == changes.keys() - {name}


def test_a_construction_is_changed_whatever_way_its_arguments_are_given():
    args, kwargs, refused = changed_arguments(SIGNATURE, (DATA, 4, True), {"num_workers": 2}, {"num_workers": 1})
    assert DataLoader(*args, **kwargs).num_workers == 1
    assert refused == {}


def test_a_construction_without_workers_drops_what_needs_them():
    given = {"num_workers": 2, "timeout": 5, "persistent_workers": True, "prefetch_factor": 3}
    args, kwargs, refused = changed_arguments(SIGNATURE, (DATA,), given, {"num_workers": 0})
    assert DataLoader(*args, **kwargs).timeout == 0
    assert refused == {}


def test_a_construction_with_batches_of_its_own_keeps_them():
    args, kwargs, refused = changed_arguments(SIGNATURE, (DATA,), {"batch_sampler": batches()}, {"batch_size": 2})
    assert len(DataLoader(*args, **kwargs)) == 3
    assert "itself" in refused["batch_size"]


def test_length_of_an_iterable_loader_leaves_no_trace():
    class Numbers(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(10))

        def __len__(self):
            return 10

    found = DataLoader(Numbers(), batch_size=4)
    assert loader.batches_per_epoch(found) == 3
    assert found._IterableDataset_len_called is None


@pytest.mark.parametrize(
    ("batch_size", "batch", "samples"),
    [(4, torch.zeros(4, 2), 4), (4, torch.zeros(3, 2), 3), (4, torch.zeros(99, 2), 4), (None, torch.zeros(7, 2), 7)],
)
def test_samples_come_from_the_tensors_where_there_are_no_index_batches(batch_size, batch, samples):
    made = loader.Made(0, "x.py:1", 0, ())
    asked = DataLoader(DATA, batch_size=batch_size)
    watch = Watch(made, asked, iter(asked), None, number=0, began_ns=0)
    assert watch.samples_of({"rows": batch}) == samples


def test_the_configuration_is_what_the_loader_says():
    found = loader.configuration(DataLoader(DATA, batch_sampler=batches(5), num_workers=2), True, "mixed")
    assert found == {
        "num_workers": 2, "pin_memory": True, "non_blocking": "mixed", "prefetch_factor": 2,
        "persistent_workers": False, "batch_size": 5,
    }  # fmt: skip


def test_a_watch_does_not_keep_the_iterator_of_the_target_alive():
    asked = DataLoader(DATA)
    iterator = iter(asked)
    watch = Watch(loader.Made(0, "x.py:1", 0, ()), asked, iterator, None, number=0, began_ns=0)
    iterator.__dict__["watch"] = watch
    assert watch.iterator is iterator
    del iterator
    assert watch.iterator is None
