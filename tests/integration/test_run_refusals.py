"""What cannot be carried out: exit 2 and one sentence, before any training starts where that is possible."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .product import Product, train

pytestmark = pytest.mark.integration

REFUSED = {
    "missing file": (["run", "nowhere.py"], "There is no file nowhere.py."),
    "directory": (["run", "folder"], "folder is a directory."),
    "binary": (["run", "binary.bin"], "binary.bin cannot be run as Python"),
    "syntax error": (["run", "broken.py"], "broken.py cannot be run as Python: SyntaxError"),
    "missing module": (["run", "-m", "no_such_module"], "no_such_module cannot be run as Python"),
    "no target": (["run"], "No TARGET was given."),
    "unknown argument in the grid": (["run", "train.py", "--grid", "workers=2"], "workers"),
    "value in the grid": (["run", "train.py", "--sweep", "--grid", "num_workers=many"], "many"),
    "negative workers": (["run", "train.py", "--sweep", "--grid", "num_workers=-1"], "-1"),
    "unknown option": (["run", "train.py", "--epochs", "3"], "go after `--`"),
    "duration": (["run", "train.py", "--budget", "soon"], "'soon' is not a duration"),
    "loader": (["run", "train.py", "--loader", "train.py"], "--loader train.py is not FILE:LINE."),
    "interpreter": (["run", "train.py", "--python", "no-such-python"], "There is no interpreter no-such-python."),
    "existing output": (["run", "train.py", "-o", "folder"], "exists already."),
    "forced output that is no run": (["run", "train.py", "-o", "folder", "--force"], "holds no pindiag run"),
    "unwritable output": (["run", "train.py", "-o", "/proc/pindiag/out"], "cannot be written"),
    "not a run": (["report", "folder"], "holds no pindiag run"),
    "unknown rule": (["explain", "cpu_bond"], "cpu_bound"),
    "unknown command": (["sweep"], "sweep"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_one_sentence(case: str, product: Product) -> None:
    words, sentence = REFUSED[case]
    (product.folder / "folder").mkdir()
    (product.folder / "folder" / "something").touch()
    (product.folder / "binary.bin").write_bytes(os.urandom(64) + b"\0")
    (product.folder / "broken.py").write_text("def broken(:\n")
    train(product.folder / "train.py")
    done = product(*words)
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr
    assert done.stderr.startswith("pindiag: ")
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (product.folder / "pindiag-runs").exists()


def test_no_torch_in_the_interpreter(product: Product) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(product.folder / "bare")], check=True)
    train(product.folder / "train.py")
    done = product("run", "train.py", "--python", str(product.folder / "bare" / "bin" / "python"))
    assert done.returncode == 2
    assert "has no torch" in done.stderr


def test_no_data_loader(product: Product) -> None:
    (product.folder / "train.py").write_text("import torch\nprint(torch.zeros(2).sum())\n")
    done = product("run", "train.py", "-o", "out")
    assert done.returncode == 2, done.stderr
    assert "made no torch DataLoader" in done.stderr


def test_the_named_loader_is_not_there(product: Product) -> None:
    train(product.folder / "train.py", epochs=1)
    done = product("run", "train.py", "-o", "out", "--loader", "train.py:3")
    assert done.returncode == 2, done.stderr
    assert "ended without training from the loader at train.py:3" in done.stderr
    assert "train.py:" in done.stderr.split("Its loaders:")[1]
