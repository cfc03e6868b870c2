"""What is handed to the launches that verify a patch, and what is refused before any is started."""

from __future__ import annotations

import json
import sys

import msgspec
import pytest

from pindiag.api import patching
from pindiag.errors import NothingToApply, SourceChanged
from pindiag.fixes import patch_loader
from pindiag.model import Fix, LoaderKey, Safety
from pindiag.store import RunDirectory
from tests.unit.conftest import run_spec
from tests.unit.report import example

SOURCE = "import torch\nloader = torch.utils.data.DataLoader(data, num_workers=4)\n"
AFTER = patch_loader(SOURCE, "train.py", 2, {"intraop_threads": 4, "num_workers": 0}).after
FIX = Fix(
    summary="Set num_workers=0.",
    changes={"num_workers": 0, "pin_memory": True, "lazy_sync": True},
    by_hand=["pin_memory", "lazy_sync"],
    location=None,
    patch=patch_loader(SOURCE, "train.py", 2, {"intraop_threads": 4, "num_workers": 0}).diff,
    snippet=None,
    effect=None,
    trade_off=None,
    safety=Safety(status="passed", reason=""),
)


@pytest.fixture
def directory(tmp_path, script, monkeypatch):
    """A run that recommends a change, which moves the loader by two lines."""
    place = tmp_path / "train.py"
    place.write_text(SOURCE)
    made = RunDirectory.create(tmp_path / "out")
    spec = run_spec(target=str(place), cwd=str(tmp_path), python=sys.executable, sweep=True, budget_s=300.0)
    made.write_spec(spec)
    made.write(made.sources, json.dumps({str(place): SOURCE}).encode())
    report = example.confirmed()
    recommendation = msgspec.structs.replace(report.recommendation, fix=FIX)
    report = msgspec.structs.replace(report, findings=[], recommendation=recommendation)
    monkeypatch.setattr(patching, "assemble", lambda _: (report, None))
    fake = script()
    found = msgspec.structs.replace(fake.chosen(fake.baseline), key=LoaderKey(location=f"{place}:2", ordinal=0))
    monkeypatch.setattr(RunDirectory, "records", lambda _: [msgspec.structs.replace(found, launch=1)])
    return made


@pytest.mark.parametrize("now", [SOURCE, AFTER], ids=["as measured", "patched already"])
def test_both_sides_are_texts_and_the_loader_is_looked_for_where_it_moved(now, directory, tmp_path):
    place = tmp_path / "train.py"
    place.write_text(now)
    spec = patching._spec(directory, 60.0)
    assert (spec.patch.before, spec.patch.after) == ({str(place): SOURCE}, {str(place): AFTER})
    assert spec.patch.loader == LoaderKey(location=f"{place}:4", ordinal=0)
    assert AFTER.splitlines()[3].startswith("loader = ")
    assert (spec.sweep, spec.fresh, spec.budget_s, spec.patch.summary) == (False, True, 60.0, FIX.summary)
    assert spec.patch.by_hand == {"pin_memory": True}
    assert place.read_text() == now


def test_a_file_that_is_neither_is_refused(directory, tmp_path):
    (tmp_path / "train.py").write_text(SOURCE + "# edited\n")
    with pytest.raises(SourceChanged, match="was changed since the run"):
        patching._spec(directory, 60.0)


def test_so_is_a_run_whose_folder_is_gone(directory):
    directory.write_spec(msgspec.structs.replace(directory.read_spec(), cwd="/nowhere"))
    with pytest.raises(NothingToApply, match="/nowhere, is gone"):
        patching._spec(directory, 60.0)
