"""Each sample is a script that plain Python runs to its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
SMALL = {
    "article_floats": ["--samples", "64", "--workers", "1"],
    "augment_resnet": ["--samples", "64"],
    "healthy_compute": ["--samples", "64"],
    "jpeg_folder": ["--files", "32", "--cache", "cache"],
    "padded_text": ["--texts", "64", "--words", "100"],
    "pinned_without_gpu": ["--samples", "128", "--points", "100"],
    "tabular_rows": ["--rows", "320"],
}


def test_no_sample_is_left_out():
    assert set(SMALL) == {path.stem for path in SAMPLES.glob("*.py")}


@pytest.mark.parametrize(("name", "small"), SMALL.items())
def test_a_sample_runs_to_its_end(name, small, tmp_path):
    command = [sys.executable, str(SAMPLES / f"{name}.py"), "--epochs", "2", *small]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    epochs = [line.split(":")[0] for line in done.stdout.splitlines()]
    assert epochs == ["epoch 1", "epoch 2"]


def test_the_photographs_are_cut_once(tmp_path):
    command = [sys.executable, str(SAMPLES / "jpeg_folder.py"), "--epochs", "1", "--files", "8", "--cache", "cache"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=True)
    made = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jpg")}
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=True)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jpg")} == made
    assert len(made) == 8
