"""Each sample is a script that plain Python runs to its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .probe_harness import TARGETS
from .warm_python import warm_python

pytestmark = pytest.mark.integration

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
SMALL = {
    "article_floats": ["--samples", "64", "--workers", "1"],
    "augment_resnet": ["--samples", "64"],
    "blas_in_workers": ["--samples", "16"],
    "context_in_worker": ["--samples", "64"],
    "crashing_worker": ["--samples", "64"],
    "custom_batch": ["--samples", "64"],
    "dense_collate": ["--rows", "256"],
    "encoder_on_cpu": ["--samples", "256"],
    "every_tenth_batch": ["--shards", "2", "--features", "64"],
    "healthy_cached": ["--samples", "128"],
    "healthy_compute": ["--samples", "64"],
    "healthy_pinned": ["--samples", "32"],
    "healthy_stream": ["--samples", "128"],
    "healthy_workers": ["--samples", "64"],
    "item_every_step": ["--samples", "256"],
    "jpeg_folder": ["--files", "32", "--cache", "cache"],
    "kept_batches": ["--samples", "128"],
    "many_small_layers": ["--samples", "640"],
    "many_tensors": ["--rows", "512"],
    "misleading_clock": ["--samples", "64"],
    "objects_in_dataset": ["--records", "128", "--width", "32"],
    "padded_text": ["--texts", "64", "--words", "100"],
    "pageable_blocking": ["--samples", "64"],
    "pickled_dataset": ["--sentences", "64", "--words", "50"],
    "pinned_by_hand": ["--samples", "64"],
    "pinned_memory_pressure": ["--samples", "16"],
    "pinned_to_one_core": ["--samples", "64"],
    "pinned_without_gpu": ["--samples", "128", "--points", "100"],
    "rebuilt_loader": ["--samples", "128"],
    "rows_by_item": ["--rows", "4096"],
    "second_loader": ["--samples", "64"],
    "shallow_prefetch": ["--batches", "4"],
    "slow_reads": ["--samples", "64"],
    "slow_start": ["--samples", "128", "--entries", "1000"],
    "tabular_rows": ["--rows", "320"],
    "two_decode_and_batch": ["--samples", "64"],
    "two_decode_and_item": ["--samples", "64"],
    "two_slow_loaders": ["--samples", "64"],
    "unsafe_copies": ["--samples", "128"],
}

# Runs a sample beside a pin thread, whose accelerator is pretended, and reads the main thread's intra-op threads.
THREADS = """
import ctypes, runpy, sys
import torch
from torch.utils.data import DataLoader

sys.path.append(TARGETS)
from pretended_pinning import pretend_pinning

pretend_pinning()
made = DataLoader.__init__
DataLoader.__init__ = lambda loader, *args, **words: made(loader, *args, **{**words, "pin_memory": PINNED})

sys.argv = sys.argv[1:]
MEND
runpy.run_path(sys.argv[0], run_name="__main__")
mapped = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
openmp = next(path for path in mapped if any(name in path for name in ("libgomp", "libiomp", "libomp")))
print("threads", ctypes.CDLL(openmp).omp_get_max_threads())
"""


def test_no_sample_is_left_out():
    assert set(SMALL) == {path.stem for path in SAMPLES.glob("*.py")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """In which samples run one after the other."""
    return tmp_path_factory.mktemp("samples")


@pytest.mark.parametrize(("name", "small"), SMALL.items())
def test_a_sample_runs_to_its_end(name, small, folder):
    words = [str(SAMPLES / f"{name}.py"), "--epochs", "2", *small]
    with (folder / "stdout").open("w+") as out, (folder / "stderr").open("w+") as err:
        child = warm_python().start(words, folder, {1: out.fileno(), 2: err.fileno()})
        assert child.wait() == 0, (folder / "stderr").read_text()
    epochs = [line.split(":")[0] for line in (folder / "stdout").read_text().splitlines()]
    assert epochs == ["epoch 1", "epoch 2"]


def test_the_photographs_are_cut_once(tmp_path):
    command = [sys.executable, str(SAMPLES / "jpeg_folder.py"), "--epochs", "1", "--files", "8", "--cache", "cache"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=True)
    made = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jpg")}
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=True)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jpg")} == made
    assert len(made) == 8


@pytest.mark.skipif(sys.platform != "linux", reason="the OpenMP library is found in /proc")
@pytest.mark.parametrize(
    ("pinned", "mend", "threads"),
    [
        (True, "", 1),
        (True, "torch.set_num_threads(torch.get_num_threads())", 2),
        (False, "", 2),
    ],
)
def test_the_encoder_loses_its_threads_to_the_pin_thread_alone(pinned, mend, threads, tmp_path):
    code = THREADS.replace("PINNED", str(pinned)).replace("MEND", mend).replace("TARGETS", repr(str(TARGETS)))
    command = [sys.executable, "-c", code, str(SAMPLES / "encoder_on_cpu.py"), "--epochs", "1", "--samples", "1024"]
    two = {**os.environ, "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    done = subprocess.run(command, cwd=tmp_path, env=two, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"threads {threads}"
