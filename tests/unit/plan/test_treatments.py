import pytest

from pindiag.plan.treatments import baseline_treatment, treatment, treatment_id


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "nw4-pin0"),
        ({"num_workers": 0, "prefetch_factor": None}, "nw0-pin0"),
        ({"pin_memory": True, "non_blocking": True}, "nw4-pin1-nb1"),
        ({"non_blocking": "mixed"}, "nw4-pin0-nbmixed"),
        ({"prefetch_factor": 4, "persistent_workers": True}, "nw4-pin0-pf4-pw"),
    ],
)
def test_ids(loader_arguments, changes, name):
    assert treatment_id(loader_arguments(**changes)) == name


def test_the_baseline_changes_nothing(loader_arguments):
    assert baseline_treatment(loader_arguments()).changes == {}


@pytest.mark.parametrize(
    ("baseline", "asked", "changes"),
    [
        ({"num_workers": 0, "prefetch_factor": None}, {"num_workers": 2}, {"num_workers": 2}),
        ({"num_workers": 0, "prefetch_factor": None}, {"num_workers": 2, "prefetch_factor": 2}, {"num_workers": 2}),
        ({"persistent_workers": True}, {"num_workers": 0, "prefetch_factor": 4}, {"num_workers": 0}),
        ({"prefetch_factor": 4}, {"num_workers": 2}, {"num_workers": 2}),
        ({"non_blocking": "mixed"}, {"non_blocking": True}, {"non_blocking": True}),
        ({}, {"pin_memory": False}, {}),
        ({}, {"non_blocking": True}, {}),
    ],
)
def test_changes_name_only_what_differs(loader_arguments, baseline, asked, changes):
    assert treatment(loader_arguments(**baseline), asked).changes == changes


def test_without_workers_nothing_is_prefetched_or_kept(loader_arguments):
    made = treatment(loader_arguments(persistent_workers=True), {"num_workers": 0})
    assert (made.configuration.prefetch_factor, made.configuration.persistent_workers) == (None, False)
