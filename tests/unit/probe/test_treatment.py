from __future__ import annotations

import pytest

from pindiag.probe.treatment import Treatment

CHANGES = {"num_workers": 2, "non_blocking": True, "lazy_sync": True, "intraop_threads": 3}


def told(**fields):
    return {"id": "changed", "changes": CHANGES, **fields}


def test_changes_go_to_the_parts_that_make_them():
    found = Treatment(told(), intraop_threads=1)
    assert (found.loader, found.non_blocking, found.lazy_sync, found.intraop_threads) == (
        {"num_workers": 2},
        True,
        True,
        3,
    )


def test_the_number_of_a_fresh_process_holds_where_the_treatment_does_not_change_it():
    assert Treatment({"id": "nw0", "changes": {}}, intraop_threads=1).intraop_threads == 1


def test_the_script_as_written_changes_nothing():
    found = Treatment(None)
    assert (found.id, found.applied, found.loader, found.non_blocking, found.intraop_threads) == (
        None,
        {},
        {},
        None,
        None,
    )


@pytest.mark.parametrize(
    ("ablation", "replayed"), [("compute_only", True), ("host_batch", True), ("loader_only", False), (None, False)]
)
def test_replays_leave_the_loader_as_written(ablation, replayed):
    found = Treatment(told(ablation=ablation))
    assert found.replayed is replayed
    assert found.loader == ({} if replayed else {"num_workers": 2})


def test_what_is_refused_is_not_applied():
    found = Treatment(told())
    found.refused["non_blocking"] = "why"
    assert found.applied.keys() == CHANGES.keys() - {"non_blocking"}


def test_what_concerns_cpus_is_no_argument_of_the_loader():
    changes = {"worker_threads": 1, "worker_affinity": True, "fewer_intraop_threads": 2}
    found = Treatment({"id": "nw2+worker_threads", "changes": changes})
    assert (found.worker_threads, found.worker_affinity, found.fewer_threads, found.loader) == (1, True, 2, {})
    assert found.applied == changes
