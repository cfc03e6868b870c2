"""What the safety gate is made of: digests of batches, open handles, buffers that are written again."""

import io
import socket
import sqlite3
import tarfile
import zipfile
from collections import namedtuple

import pytest
import torch

from pindiag.probe import handles
from pindiag.probe.buffers import WATCHED_BATCHES, Buffers
from pindiag.probe.digest import digest_of, sample_of
from tests.unit.probe.pretended import DEVICE, hooks

Pair = namedtuple("Pair", "rows labels")


class Holder:
    def __init__(self, **held):
        self.__dict__.update(held)


# ------------------------------------------------------------------------------------------------------------ digests


def rows(value=1.0):
    return torch.full((4, 3), value)


@pytest.mark.parametrize(
    "other",
    [
        [rows(), {"label": torch.tensor([1, 2])}, "name"],
        (rows(), {"label": torch.tensor([1, 2])}, "name"),
        [rows().t().contiguous().t(), {"label": torch.tensor([1, 2])}, "name"],
    ],
)
def test_equal_batches_have_equal_digests(other):
    assert digest_of(other) == digest_of([rows(), {"label": torch.tensor([1, 2])}, "name"])


@pytest.mark.parametrize(
    "other",
    [
        [rows(1 + 2**-23), torch.tensor([1, 2]), "name", 5],
        [rows(), torch.tensor([2, 1]), "name", 5],
        [rows(), torch.tensor([1, 2]), "other", 5],
        [rows(), torch.tensor([1, 2]), "name", 6],
    ],
)
def test_batches_that_differ_in_content_have_the_same_layout(other):
    one, two = digest_of([rows(), torch.tensor([1, 2]), "name", 5]), digest_of(other)
    assert one.layout == two.layout
    assert one.content != two.content


@pytest.mark.parametrize("other", [rows().double(), rows().view(3, 4)])
def test_types_and_shapes_are_the_layout(other):
    assert digest_of(other).layout != digest_of(rows()).layout


def test_objects_arrays_and_tensors_of_other_kinds_are_read():
    numpy = pytest.importorskip("numpy")
    for make in (
        lambda value: Pair(rows(value), "labels"),
        lambda value: Holder(inner=Holder(rows=rows(value))),
        lambda value: numpy.full(3, value),
        lambda value: rows(value).to_sparse(),
        lambda value: rows(value).bfloat16(),
    ):
        assert digest_of(make(1.0)) == digest_of(make(1.0))
        assert digest_of(make(1.0)).content != digest_of(make(2.0)).content


def test_an_empty_batch_has_a_digest():
    assert digest_of([torch.empty(0), None, []]).bytes == 0


def test_a_sample_of_memory_tells_whether_it_was_written_anew():
    large = torch.zeros(100_000)
    before = sample_of(large)
    assert sample_of(large) == before
    assert sample_of(large.fill_(1)) != before
    large.untyped_storage().resize_(0)
    assert sample_of(large) == sample_of(torch.empty(0))


# ------------------------------------------------------------------------------------------------------------ handles


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rows.bin"
    path.write_bytes(bytes(64))
    return path


def found(**held):
    return {handle.place: handle.kind for handle in handles.handles_of(dataset=Holder(**held))}


def test_open_files_are_found_where_they_are_held(file):
    with file.open("rb") as binary, file.open() as text, file.open("ab") as written:
        held = {"nested": [{"deep": binary}], "text": text, "log": written}
        assert found(**held) == {"dataset.nested[0]['deep']": "io.BufferedReader", "dataset.text": "io.TextIOWrapper"}
    assert found(**held) == {}


def test_archives_databases_and_sockets_are_found(tmp_path):
    archive = zipfile.ZipFile(tmp_path / "a.zip", "w")
    tar = tarfile.open(tmp_path / "a.tar", "w")  # noqa: SIM115
    database, connection = sqlite3.connect(":memory:"), socket.socket()
    held = {"archive": archive, "tar": tar, "database": database, "connection": connection}
    kinds = ["socket.socket", "sqlite3.Connection", "tarfile.TarFile", "zipfile.ZipFile"]
    assert sorted(kind for place, kind in found(**held).items() if place.count(".") == 1) == kinds
    for each in held.values():
        each.close()
    del held["database"]  # a closed connection is not told from an open one
    assert found(**held) == {}


def test_memory_is_no_handle():
    assert found(bytes=io.BytesIO(b"rows"), text=io.TextIOWrapper(io.BytesIO(b"rows")), number=7) == {}


def test_looking_calls_nothing_of_the_targets():
    class Touchy(Holder):
        def __getattr__(self, name):
            raise AssertionError(name)

        @property
        def lazy(self):
            raise AssertionError("lazy")

    assert handles.handles_of(dataset=Touchy(inner=Touchy())) == []


def test_a_file_that_is_read_has_moved(file):
    with file.open("rb", buffering=0) as read, file.open("rb", buffering=0) as left:
        left.seek(8)
        before = handles.positions()
        if before is None:
            pytest.skip("this system does not tell positions")
        read.read(8)
        assert handles.moved(before, handles.positions()) == {str(file)}


def test_a_file_that_is_back_where_it_was_has_been_read(file):
    with file.open("rb", buffering=0) as read:
        opened = handles.positions()
        if opened is None:
            pytest.skip("this system does not tell positions")
        sharing, later = handles.Sharing(opened), handles.Sharing({})
        read.read(8)
        for each in (sharing, later):
            each.look()
        read.seek(0)
        for each in (sharing, later):
            each.look()
        assert (sharing.files, later.files, handles.Sharing(None).files) == ([str(file)], [], None)


def test_files_that_are_written_to_are_left_out(file):
    with file.open("r+b", buffering=0) as written:
        assert written.fileno() not in (handles.positions() or {})


# ------------------------------------------------------------------------------------------------------------ buffers


def rewritten(step, batches=3):
    """What is recorded of some steps with fresh batches."""
    with hooks() as transfers:
        buffers = Buffers(transfers)
        for number in range(batches):
            batch = rows(float(number))
            buffers.arrived(batch)
            step(batch)
        told = buffers.close()
        assert transfers.capture is None
    return told


def test_a_staging_buffer_is_written_again():
    staging = torch.empty(4, 3)
    told = rewritten(lambda batch: staging.copy_(batch).to(DEVICE, non_blocking=True))
    assert (told["batches"], told["copies"]) == (3, 3)
    [site] = told["rewritten"]
    assert site.pop("location").startswith(__file__)
    assert site == {
        "kind": "to",
        "non_blocking": True,
        "pinned": False,
        "of_batch": False,
        "waited": False,
        "times": 2,
    }


def test_a_wait_in_between_is_seen():
    staging = torch.empty(4, 3)
    told = rewritten(lambda batch: staging.copy_(batch).to(DEVICE).sum().item())
    assert [site["waited"] for site in told["rewritten"]] == [True]


def test_what_was_written_before_the_wait_was_written_too_soon():
    def step(batch):
        moved = batch.to(DEVICE)
        batch.zero_()
        moved.sum().item()

    assert [site["waited"] for site in rewritten(step)["rewritten"][1:]] == [False]


def test_a_batch_that_the_step_changes_is_the_loaders():
    def step(batch):
        batch.to(DEVICE)
        batch.zero_()

    [*_, site] = rewritten(step)["rewritten"]
    assert (site["of_batch"], site["waited"]) == (True, False)


def test_a_write_behind_torchs_back_is_seen():
    numpy = pytest.importorskip("numpy")
    memory = numpy.zeros((4, 3), dtype=numpy.float32)

    def step(batch):
        memory[:] = batch.numpy()
        torch.from_numpy(memory).to(DEVICE)

    assert rewritten(step)["rewritten"][0]["times"] == 2


def test_fresh_batches_are_not_written_again():
    assert rewritten(lambda batch: batch.to(DEVICE), batches=9)["rewritten"] == []


def test_it_has_seen_enough_after_some_batches():
    with hooks() as transfers:
        buffers = Buffers(transfers)
        assert [buffers.arrived(rows()) for _ in range(WATCHED_BATCHES + 1)] == [False] * WATCHED_BATCHES + [True]
        buffers.close()
