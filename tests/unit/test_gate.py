import msgspec
import pytest

from pindiag.gate import safety, unsafe, unsafe_copies
from pindiag.journal import Journal
from pindiag.model import (
    BuffersWatched,
    Configuration,
    GateBatch,
    GatePass,
    HandlesOpen,
    LaunchBegan,
    LaunchOrder,
    LoaderChosen,
    LoaderKey,
    OpenHandle,
    Rewritten,
    Treatment,
)

AT = {"launch": 1, "t_ns": 0}
EQUAL = "abcdefgh"
SITE = {
    "location": "train.py:30",
    "kind": "to",
    "non_blocking": False,
    "pinned": True,
    "of_batch": False,
    "waited": False,
    "times": 9,
}


def configuration(**changes):
    usual = {
        "num_workers": 0,
        "pin_memory": False,
        "non_blocking": False,
        "prefetch_factor": None,
        "persistent_workers": False,
        "batch_size": 64,
    }
    return Configuration(**(usual | changes))


def treatment(baseline=None, **changes):
    made = configuration(**(baseline or {}) | changes)
    return Treatment(id=made.id, kind="configuration", configuration=made, changes=changes)


def passage(trial="baseline", contents=EQUAL, backwards=False, layout="x", **fields):
    batches = [GateBatch(batch=n, layout=layout, content=one, bytes=8) for n, one in enumerate(contents)]
    fields = {"start_method": "fork"} | fields
    return GatePass(**AT, trial=trial, backwards=backwards, batches=batches[::-1] if backwards else batches, **fields)


def as_written(forth=EQUAL, back=None, **fields):
    return [passage(contents=forth, **fields), passage(contents=back or forth, backwards=True, **fields)]


def journal(*records, made=None, baseline=None):
    """A launch of a script as written, and what the gate found in it."""
    order = LaunchOrder(purpose="round", isolation="live", treatment=None, blocks=[], planned=[made] if made else [])
    written = configuration(**(baseline or {}))
    chosen = LoaderChosen(
        **AT,
        loader=3,
        key=LoaderKey(location="train.py:7", ordinal=0),
        why="the only one",
        others=[],
        configuration=written,
        batches_per_epoch=None,
        dataset_samples=None,
        batch_samples=64,
        sample_bytes=8,
        batch_bytes=512,
        tensors=1,
        iterable=False,
        dataset_class="Data",
        start_method="fork" if written.num_workers else None,
        accelerator=None,
        device=None,
        device_name=None,
        intraop_threads=None,
    )
    return Journal([LaunchBegan(**AT, pid=9, order=order), chosen, *records])


def closed(*handles):
    return HandlesOpen(**AT, loader=3, handles=list(handles))


def watched(*sites, copies=12):
    return BuffersWatched(**AT, batches=12, copies=copies, rewritten=[Rewritten(**SITE | site) for site in sites])


WORKERS = treatment(num_workers=4)
HARMLESS = [closed(), watched()]


def judged(*passes, made=WORKERS, beside=HARMLESS, baseline=None):
    return safety(journal(*passes, *beside, made=made, baseline=baseline), made)


def own(contents=EQUAL, made=WORKERS, **fields):
    fields = {"workers": made.configuration.num_workers, "shared_files": []} | fields
    return passage(made.id, contents, **fields)


# ------------------------------------------------------------------------------------------------------------ batches


def test_equal_batches_pass():
    said = judged(*as_written(), own())
    assert (said.status, said.reason.split(".")[0]) == (
        "passed",
        "8 batches are bit for bit those of the script as written",
    )


def test_batches_that_differ_fail_and_are_unsafe():
    found = journal(*as_written(), own("abcdXfgY"), *HARMLESS, made=WORKERS)
    said = safety(found, WORKERS)
    assert (said.status, "2 of 8 batches differ" in said.reason) == ("failed", True)
    assert unsafe(found, WORKERS.id) == said.reason


def test_a_dataset_that_differs_from_itself_cannot_be_compared():
    said = judged(*as_written(EQUAL, "abcdefgX"), own("ABCDEFGH"))
    assert (said.status, "random augmentation" in said.reason) == ("passed", True)


def test_other_types_or_shapes_fail_whatever_the_numbers():
    said = judged(*as_written(EQUAL, "abcdefgX"), own("ABCDEFGH", layout="y"))
    assert (said.status, "Types or shapes" in said.reason) == ("failed", True)


def test_a_passage_that_was_cut_is_compared_as_far_as_it_went():
    said = judged(*as_written(), own("abc"))
    assert (said.status, said.reason[:9]) == ("passed", "3 batches")


def test_what_raises_under_the_change_alone_fails():
    died = "RuntimeError: a worker died"
    said = judged(*as_written(), own("ab", raised=died))
    assert (said.status, died in said.reason) == ("failed", True)
    said = judged(*as_written(raised=died), own("ab", raised=died))
    assert (said.status, died in said.reason) == ("not_checked", True)


def test_a_gate_that_could_not_begin_was_not_checked():
    said = judged(passage(contents="", reason="the loader's arguments were changed where the script makes it"))
    assert (said.status, "changed where the script makes it" in said.reason) == ("not_checked", True)


def test_without_records_nothing_was_checked_and_nothing_is_unsafe():
    found = journal(made=WORKERS)
    assert safety(found, WORKERS).status == "not_checked"
    assert unsafe(found, WORKERS.id) is None


def test_as_many_workers_and_the_same_pinning_need_no_comparison():
    made = treatment(non_blocking=True)
    assert judged(made=made).status == "passed"


def test_what_passed_holds_for_those_that_make_their_batches_alike():
    deeper = treatment(num_workers=4, prefetch_factor=4)
    found = journal(*as_written(), own(), *HARMLESS, made=WORKERS)
    assert safety(found, deeper).status == "passed"
    assert safety(found, treatment(num_workers=8)).status == "not_checked"


def test_another_batch_size_is_not_compared():
    made = treatment(batch_size=128)
    found = journal(*HARMLESS, made=made)
    assert (safety(found, made).status, unsafe(found, made.id)) == ("not_checked", None)


def test_batches_that_change_when_the_next_one_comes_fail_unless_they_always_did():
    assert judged(*as_written(), own(changed_later=3)).status == "failed"
    assert judged(*as_written(changed_later=7), own(changed_later=7)).status == "passed"


@pytest.mark.parametrize(
    ("contents", "status"), [("aaaabbbb", "failed"), ("abcdefgh", "not_checked"), ("aaabbbcc", "not_checked")]
)
def test_an_iterable_dataset_is_dealt_to_workers(contents, status):
    assert judged(*as_written(iterable=True), own(contents, iterable=True)).status == status


def test_equal_batches_of_an_iterable_dataset_that_is_constant_say_nothing():
    assert judged(*as_written("aaaaaaaa", iterable=True), own("aaaaaaaa", iterable=True)).status == "not_checked"


def test_an_iterable_dataset_with_as_many_workers_is_compared():
    made = treatment(pin_memory=True)
    said = judged(*as_written(iterable=True), own("abXdefgh", made, iterable=True), made=made)
    assert (said.status, "1 of 8" in said.reason) == ("failed", True)


# ------------------------------------------------------------------------------------------------------------ handles

FILE = OpenHandle(place="dataset.rows", kind="io.BufferedReader")
HDF5 = OpenHandle(place="dataset.file", kind="h5py.File")


def handled(*handles, made=WORKERS, baseline=None, **fields):
    written = configuration(**(baseline or {})).num_workers
    passes = [*as_written(workers=written), own(made=made, **fields)]
    return judged(*passes, made=made, beside=[closed(*handles), watched()], baseline=baseline)


def test_a_file_that_workers_read_at_one_position_fails():
    said = handled(FILE, shared_files=["/data/rows.bin"])
    assert (said.status, "4 workers would share `dataset.rows` (/data/rows.bin)" in said.reason) == ("failed", True)


def test_a_file_that_is_found_moved_needs_no_handle():
    assert handled(shared_files=["/data/video.mp4"]).status == "failed"


def test_a_file_that_is_open_and_not_read_by_workers_passes():
    assert handled(FILE).status == "passed"


def test_a_file_whose_position_is_not_known_was_not_checked():
    said = handled(FILE, shared_files=None)
    assert (said.status, "`dataset.rows` (io.BufferedReader)" in said.reason) == ("not_checked", True)


def test_handles_that_no_fork_may_carry_fail_by_being_there():
    assert handled(HDF5).status == "failed"


def test_one_worker_shares_with_nobody():
    made = treatment(num_workers=1)
    assert handled(HDF5, made=made).status == "passed"


def test_spawned_workers_open_their_own():
    assert handled(HDF5, start_method="spawn").status == "passed"


def test_what_the_script_shares_already_is_said_and_does_not_fail():
    made = treatment({"num_workers": 2}, num_workers=4)
    said = handled(HDF5, made=made, baseline={"num_workers": 2})
    assert (said.status, "as those of the script as written do" in said.reason) == ("passed", True)


def test_handles_of_other_loaders_are_theirs():
    other = msgspec.structs.replace(closed(HDF5), loader=4)
    assert judged(*as_written(), own(), beside=[other, *HARMLESS]).status == "passed"


# ------------------------------------------------------------------------------------------------------------ buffers

ASYNCHRONOUS = treatment(non_blocking=True)


def buffered(*sites, made=ASYNCHRONOUS, baseline=None):
    return judged(*as_written(), own(made=made), made=made, beside=[closed(), watched(*sites)], baseline=baseline)


def test_a_pinned_buffer_that_is_written_again_fails_under_non_blocking():
    said = buffered({})
    assert (said.status, "train.py:30" in said.reason) == ("failed", True)


@pytest.mark.parametrize("site", [{"waited": True}, {"pinned": False}, {"kind": "copy_"}])
def test_what_cannot_race_passes(site):
    assert buffered(site).status == "passed"


def test_blocking_copies_pass():
    assert buffered({}, made=WORKERS).status == "passed"


def test_a_batch_that_the_step_changes_is_pinned_by_the_loader():
    batch = {"pinned": False, "of_batch": True}
    pinned = treatment(pin_memory=True, non_blocking=True)
    assert buffered(batch).status == "passed"
    assert buffered(batch, made=pinned).status == "failed"


def test_a_race_of_the_script_as_written_is_said_and_does_not_fail():
    made = treatment({"non_blocking": True}, num_workers=4)
    said = buffered({"non_blocking": True}, made=made, baseline={"non_blocking": True})
    assert (said.status, "as written as well" in said.reason) == ("passed", True)


def test_mixed_calls_keep_their_own_way():
    made = treatment({"non_blocking": "mixed"}, num_workers=4)
    assert buffered({}, made=made, baseline={"non_blocking": "mixed"}).status == "passed"


def test_all_that_speaks_against_it_is_said():
    made = treatment(num_workers=4, non_blocking=True)
    beside = [closed(HDF5), watched({})]
    said = judged(*as_written(), own("abcdefgX", made), made=made, beside=beside)
    assert [text in said.reason for text in ("1 of 8", "dataset.file", "train.py:30")] == [True] * 3


@pytest.mark.parametrize(
    ("site", "baseline", "places"),
    [
        ({"non_blocking": True, "kind": "copy_"}, {}, ["train.py:30"]),
        ({}, {"non_blocking": True}, ["train.py:30"]),
        ({"pinned": False, "of_batch": True}, {"non_blocking": True, "pin_memory": True}, ["train.py:30"]),
        ({"pinned": False}, {"non_blocking": True}, []),
        ({"waited": True}, {"non_blocking": True}, []),
        ({}, {}, []),
    ],
)
def test_where_the_script_as_written_writes_what_a_copy_may_read(site, baseline, places):
    assert unsafe_copies(journal(watched(site, site), baseline=baseline)) == places


def test_what_was_not_watched_is_not_known():
    assert unsafe_copies(journal()) is None
