"""The user's files are as before: after a run, after `kill -9` of the child, and of the parent."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from .product import Product, train

pytestmark = pytest.mark.integration

WRITES = """
with open("train.log", "a") as log:
    log.write(f"step {step}\\n")
if step == 12:
    torch.save(model.state_dict(), "best_model.pth")
    from safetensors.torch import save_file
    save_file(model.state_dict(), "model.safetensors")
    open("history.csv", "w").write("new")
    os.remove("stale.txt")
    os.makedirs("../elsewhere", exist_ok=True)
    torch.save(model.state_dict(), "../elsewhere/checkpoint.pt")
    os.replace("history.csv", "results.csv")
    with open("notes.txt", "r+") as notes:
        notes.write("overwritten")
"""


def lay(folder: Path) -> Path:
    work = folder / "work"
    work.mkdir()
    for name in ("train.log", "best_model.pth", "model.safetensors", "stale.txt", "results.csv", "notes.txt"):
        (work / name).write_text(f"the user's own {name}\n")
    (work / "notes.txt").chmod(0o640)
    (folder / "elsewhere").mkdir()
    train(work / "train.py", body=WRITES, item="time.sleep(0.001)")
    return work


def state(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path.relative_to(folder)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mode)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "out" not in path.relative_to(folder).parts
    }


@pytest.fixture
def work(product: Product) -> Path:
    work = lay(product.folder)
    product.folder = work
    return work


def test_as_before_after_a_run(product: Product, work: Path) -> None:
    before = state(work.parent)
    done = product("run", "train.py", "-o", "out", "--rounds", "2", "--steps", "40")
    assert done.returncode == 0, done.stderr
    assert state(work.parent) == before
    changed = "\n".join(product.report().target.files_changed)
    for name in ("train.log", "best_model.pth", "model.safetensors", "stale.txt", "results.csv", "notes.txt"):
        assert name in changed


@pytest.mark.parametrize("victim", ["target", "parent"])
def test_as_before_after_kill(product: Product, work: Path, victim: str) -> None:
    before = state(work.parent)
    child = product.start("run", "train.py", "-o", "out", "--steps", "100000", "--rounds", "1")
    product.wait_for("notes.txt")
    if victim == "parent":
        child.kill()
    else:
        for process in product.processes():
            if any("bootstrap.py" in word for word in process.cmdline()):
                process.kill()
    child.communicate(timeout=60)
    product.wait_until_gone(3)
    done = product("report", "out")
    assert done.returncode == 0, done.stderr
    assert state(work.parent) == before
    assert os.path.exists(work / "out" / "report.html")
