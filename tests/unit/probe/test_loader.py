from __future__ import annotations

import inspect
import warnings

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, Subset, TensorDataset

from pindiag.probe import loader
from pindiag.probe.loader import changed_arguments, clone, feed, quiet, silenced

DATA = torch.arange(10)
SIGNATURE = inspect.signature(DataLoader.__init__)


def batches(batch_size=4):
    return BatchSampler(SequentialSampler(DATA), batch_size, False)


def test_a_clone_changes_only_itself():
    class Own(DataLoader):
        pass

    original = Own(DATA, batch_size=4)
    before = dict(original.__dict__)
    twin, refused = clone(original, {"num_workers": 2, "batch_size": 5, "pin_memory": True})
    assert original.__dict__ == before
    assert (type(twin), twin.num_workers, twin.prefetch_factor, twin.batch_size, twin.pin_memory) == (
        Own,
        2,
        2,
        5,
        True,
    )
    assert list(twin.batch_sampler) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert refused == {}


def test_no_workers_take_everything_with_them_that_needs_workers():
    original = DataLoader(
        DATA, num_workers=2, persistent_workers=True, prefetch_factor=4, timeout=9, multiprocessing_context="spawn"
    )
    twin = clone(original, {"num_workers": 0})[0]
    assert (twin.persistent_workers, twin.prefetch_factor, twin.timeout, twin.multiprocessing_context) == (
        False, None, 0, None,
    )  # fmt: skip
    assert len(list(twin)) == 10


def test_a_fed_clone_takes_its_batches_from_the_stream_and_its_seeds_from_elsewhere():
    generator = torch.Generator()
    original = DataLoader(DATA, batch_size=4, generator=generator)
    before = generator.get_state()
    twin, _ = clone(original, {})
    feed(twin, [[7, 8], [9]], torch.Generator())
    assert [batch.tolist() for batch in twin] == [[7, 8], [9]]
    assert torch.equal(generator.get_state(), before)


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
    _, refused = clone(DataLoader(DATA, **arguments), changes)
    (name,) = refused
    assert reason in refused[name]


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


def test_the_configuration_is_what_the_loader_says():
    found = loader.configuration(DataLoader(DATA, batch_sampler=batches(5), num_workers=2), True, "mixed")
    assert found == {
        "num_workers": 2, "pin_memory": True, "non_blocking": "mixed", "prefetch_factor": 2,
        "persistent_workers": False, "batch_size": 5,
    }  # fmt: skip


def warnings_of(make):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("default")
        make()
    return [str(each.message)[:12] for each in heard]


def test_only_what_a_change_provokes_is_silent(monkeypatch):
    monkeypatch.setattr(torch.utils.data.dataloader.os, "sched_getaffinity", lambda _: {0}, raising=False)

    def make(changes):
        with quiet(changes):
            iter(DataLoader(DATA, pin_memory=True, pin_memory_device="cuda"))
            DataLoader(DATA, num_workers=30)

    heard = warnings_of(lambda: make(()))  # torch 2.6 says nothing of pinning
    assert "This DataLoa" in heard
    assert warnings_of(lambda: make({"num_workers": 1})) == [each for each in heard if each != "This DataLoa"]
    assert warnings_of(lambda: make({"pin_memory": True})) == [each for each in heard if each != "'pin_memory'"]
    with silenced():
        assert warnings_of(lambda: iter(DataLoader(DATA, pin_memory=True))) == []


def test_refusals_come_in_the_order_in_which_changes_were_asked_for():
    wanted = {"timeout": 3, "prefetch_factor": 4, "persistent_workers": True}
    for asked in (wanted, dict(reversed(wanted.items()))):
        assert list(clone(DataLoader(DATA), asked)[1]) == list(asked)


@pytest.mark.parametrize(
    "said",
    [
        "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.",
        "pin memory device is set and pin_memory flag is not used then device pinned memory won't be used",  # 2.6
    ],
)
def test_the_words_of_any_torch_are_known(said):
    def say(changes):
        with quiet(changes):
            torch.utils.data.dataloader.warnings.warn(said)

    assert warnings_of(lambda: say(())) == [said[:12]]
    assert warnings_of(lambda: say({"pin_memory": False})) == []


def test_silence_does_not_make_python_repeat_what_it_has_shown():
    def say():
        warnings.warn("once", stacklevel=1)
        with silenced():
            pass

    assert warnings_of(lambda: [say() for _ in range(3)]) == ["once"]


class Batches(TensorDataset):
    def __getitems__(self, indices):
        return self.tensors[0][indices]


@pytest.mark.parametrize(
    ("dataset", "arguments", "whole"),
    [
        (TensorDataset(torch.zeros(8)), {"batch_size": 4}, False),
        (Subset(TensorDataset(torch.zeros(8)), range(4)), {"batch_size": 4}, False),
        (Batches(torch.zeros(8)), {"batch_size": 4}, True),
        (Subset(Batches(torch.zeros(8)), range(4)), {"batch_size": 4}, True),
        (TensorDataset(torch.zeros(8)), {"batch_size": None}, True),
    ],
)
def test_whether_the_dataset_gives_whole_batches(dataset, arguments, whole):
    assert loader.fetches_batches(DataLoader(dataset, **arguments)) is whole
