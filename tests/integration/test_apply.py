"""A sample is measured, its recommended change applied, and measured again: nothing is left to apply."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from pindiag.model import LaunchBegan, LoaderChosen
from pindiag.store import RunDirectory

from .product import Product

pytestmark = pytest.mark.integration

SAMPLE = Path(__file__).parents[2] / "samples" / "tabular_rows.py"
SWEEP = ("--sweep", "--grid", "num_workers=0", "--rounds", "3", "--budget", "20s", "--no-verify", "-o")


def test_an_applied_change_is_not_proposed_again(product: Product) -> None:
    script = product.folder / "train.py"
    shutil.copyfile(SAMPLE, script)
    assert product("run", "train.py", *SWEEP, "out").returncode == 0
    assert script.read_bytes() == SAMPLE.read_bytes()

    _verify(product, script)

    done = product("apply", "out", "--yes")
    assert done.returncode == 0, done.stderr
    assert "-        num_workers=4,\n+        num_workers=0,\n" in done.stdout
    assert script.read_text() == SAMPLE.read_text().replace("num_workers=4", "num_workers=0")
    ast.parse(script.read_text())
    assert script.with_name("train.py.orig").read_bytes() == SAMPLE.read_bytes()
    assert "It is so already" in product("apply", "out", "--yes").stderr

    again = product("run", "train.py", *SWEEP, "again")
    assert again.returncode == 0, again.stderr
    refused = product("apply", "again", "--yes")
    assert (refused.returncode, "recommends no change" in refused.stderr) == (2, True), refused.stderr
    product.wait_until_gone(1)


def _verify(product: Product, script: Path) -> None:
    """The patch is measured with the file as it is, and the report says so."""
    done = product("run", "--verify-patch", "out", "--budget", "12s", "-q")
    assert done.returncode == 0, done.stderr
    made = product.report("out").patch_verification
    assert made is not None
    assert made.pairs >= 1, made.reason
    assert done.stdout.count(f"{made.ratio:.2f} ×") == 1, done.stdout
    assert (product.folder / "out" / "summary.md").read_text().count("Patch measured") == 1
    records = RunDirectory.open(product.folder / "out" / "patched").records()
    patched = {record.launch for record in records if isinstance(record, LaunchBegan) and record.order.patched}
    seen = {(r.launch in patched, r.configuration.num_workers) for r in records if isinstance(r, LoaderChosen)}
    assert seen == {(False, 4), (True, 0)}, "the probe changes no argument: the text of the file does"
    assert script.read_bytes() == SAMPLE.read_bytes()
