"""A script is measured, its recommended change applied, and measured again: nothing is left to apply."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pindiag.model import LaunchBegan, LoaderChosen
from pindiag.store import RunDirectory

from .product import Product

pytestmark = pytest.mark.integration

SCRIPT = """\
import time
import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, index):
        time.sleep(0.005)  # waits, so that workers help however busy the machine is
        return torch.ones(8), 0


loader = DataLoader(
    Slow(),
    batch_size=8,
    num_workers=0,  # as published
)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(9):
    for images, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
"""
CHANGED = SCRIPT.replace("num_workers=0", "num_workers=4")
SWEEP = ("--sweep", "--rounds", "3", "--budget", "20s", "--no-verify", "-o")


def test_an_applied_change_is_not_proposed_again(product: Product) -> None:
    script = product.folder / "train.py"
    script.write_text(SCRIPT)
    assert product("run", "train.py", "--grid", "num_workers=4", *SWEEP, "out").returncode == 0
    assert script.read_text() == SCRIPT
    _verify(product, script)

    done = product("apply", "out", "--yes")
    assert done.returncode == 0, done.stderr
    assert "-    num_workers=0,  # as published\n+    num_workers=4,  # as published\n" in done.stdout
    assert script.read_text() == CHANGED
    ast.parse(script.read_text())
    assert script.with_name("train.py.orig").read_text() == SCRIPT
    assert "It is so already" in product("apply", "out", "--yes").stderr

    again = product("run", "train.py", "--grid", "num_workers=0", *SWEEP, "again", "--rounds", "2", "--budget", "8s")
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
    assert seen == {(False, 0), (True, 4)}, "the probe changes no argument: the text of the file does"
    assert script.read_text() == SCRIPT
