import itertools

import pytest

from pindiag.errors import ExitCode, GridError
from pindiag.plan.grid import asked_treatments, default_treatments, most_telling, parse_grid


def test_parses_the_documented_example():
    text = "num_workers=0,2,4 pin_memory=on,off non_blocking=on,off prefetch_factor=2,4"
    assert parse_grid(text) == {
        "num_workers": [0, 2, 4],
        "pin_memory": [True, False],
        "non_blocking": [True, False],
        "prefetch_factor": [2, 4],
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("workers=2", "no argument 'workers'"),
        ("num_worker=2", "Did you mean num_workers?"),
        ("num_workers", "is not NAME=VALUE"),
        ("", "is not NAME=VALUE"),
        ("num_workers=-1", "cannot be '-1'. It takes a whole number from 0."),
        ("num_workers=2,,4", "cannot be ''"),
        ("num_workers=2.5", "cannot be '2.5'"),
        ("prefetch_factor=0", "a whole number from 1"),
        ("pin_memory=maybe", "It takes on or off."),
        ("num_workers=1 num_workers=2", "names num_workers twice"),
    ],
)
def test_refuses_with_a_sentence(text, says):
    with pytest.raises(GridError) as caught:
        parse_grid(text)
    assert says in str(caught.value)
    assert caught.value.exit_code is ExitCode.USAGE


def test_combinations_are_normalised_and_unique(loader_arguments):
    baseline = loader_arguments(num_workers=2, non_blocking=False)
    found = asked_treatments(parse_grid("num_workers=0,2 prefetch_factor=2,4 pin_memory=off,on"), baseline)
    assert [made.id for made in found] == [
        "nw0-pin0-nb0",
        "nw0-pin1-nb0",
        "nw2-pin1-nb0",
        "nw2-pin0-nb0-pf4",
        "nw2-pin1-nb0-pf4",
    ]


def test_non_blocking_is_not_swept_where_no_call_can_be_switched(loader_arguments):
    found = asked_treatments(parse_grid("non_blocking=on,off pin_memory=on"), loader_arguments())
    assert [made.id for made in found] == ["nw4-pin1"]


def test_batch_size_only_when_asked(loader_arguments):
    (found,) = asked_treatments(parse_grid("batch_size=64,128"), loader_arguments())
    assert (found.id, found.changes) == ("nw4-pin0-bs128", {"batch_size": 128})


@pytest.mark.parametrize(
    ("workers", "pin", "non_blocking", "cpus", "accelerator"),
    list(
        itertools.product(
            (0, 1, 2, 4, 16), (False, True), (None, False, True, "mixed"), (1, 2, 8, 64), (None, "cuda", "mps")
        )
    ),
)
def test_default_grid(loader_arguments, workers, pin, non_blocking, cpus, accelerator):
    baseline = loader_arguments(num_workers=workers, pin_memory=pin, non_blocking=non_blocking)
    found = default_treatments(baseline, cpus, accelerator)
    assert 6 <= len(found) <= 10
    assert len({made.id for made in found} | {baseline.id}) == len(found) + 1
    assert all(made.changes for made in found)
    ids = {made.id for made in found} | {baseline.id}
    if accelerator == "cuda" and non_blocking is False:
        assert ids >= {f"nw{workers}-pin0-nb0", f"nw{workers}-pin1-nb0", f"nw{workers}-pin1-nb1"}
    elif accelerator != "cuda":
        assert not any("non_blocking" in made.changes for made in found)
        assert any("pin_memory" in made.changes for made in found) is pin


@pytest.mark.parametrize(("workers", "cpus"), list(itertools.product((0, 1, 2, 4, 16), (1, 2, 8, 64))))
@pytest.mark.parametrize("accelerator", [None, "cuda", "mps"])
def test_no_default_of_a_live_run_differs_in_persistence_alone(loader_arguments, workers, cpus, accelerator):
    found = default_treatments(loader_arguments(num_workers=workers), cpus, accelerator, live=True)
    assert 5 <= len(found) <= 10
    assert not any("persistent_workers" in made.changes for made in found)


@pytest.mark.parametrize("accelerator", [None, "cuda"])
@pytest.mark.parametrize(
    ("workers", "prefetch", "longer"), [(2, 1, True), (2, 2, False), (2, 8, False), (0, None, False)]
)
def test_a_search_begins_with_a_longer_queue_where_it_is_short(
    loader_arguments, accelerator, workers, prefetch, longer
):
    baseline = loader_arguments(num_workers=workers, prefetch_factor=prefetch)
    found = [made.changes for made in most_telling(baseline, 8, accelerator)]
    assert ({"prefetch_factor": 4} in found) is longer
