"""What a tweak changes in workers when they are born."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from torch.utils.data import _utils

from pindiag.probe import worker_birth, workers
from pindiag.probe.worker_birth import Birth

ROOT = Path(__file__).parents[3]
LIMITED = """
import os, sys
import numpy
from pindiag.probe.worker_birth import limit_threads
matrix = numpy.ones((256, 256), numpy.float32)
matrix @ matrix
limit_threads(1)
import ctypes
from pindiag.probe.worker_birth import loaded_libraries
names = ("openblas_get_num_threads", "openblas_get_num_threads64_", "scipy_openblas_get_num_threads",
         "scipy_openblas_get_num_threads64_")
for path in loaded_libraries():
    for name in names:
        if "openblas" in path and hasattr(ctypes.CDLL(path), name):
            print(getattr(ctypes.CDLL(path), name)())
print(os.environ["OPENBLAS_NUM_THREADS"])
"""


def test_without_a_change_the_scripts_own_function_stays() -> None:
    def own(worker: int) -> None:
        del worker

    assert Birth().after(own) is own
    assert Birth().after(None) is None


def test_changes_come_after_the_scripts_own_function(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, object]] = []
    monkeypatch.setattr(worker_birth, "limit_threads", lambda number: seen.append(("threads", number)))
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cpus: seen.append(("cpus", cpus)), raising=False)
    prepare = Birth(threads=1, cpus=(0, 3)).after(lambda worker: seen.append(("own", worker)))
    assert prepare is not None
    prepare(2)
    assert seen == [("own", 2), ("threads", 1), ("cpus", (0, 3))]


def test_a_function_that_fails_stays_the_scripts_own_failure() -> None:
    def fails(worker: int) -> None:
        raise ValueError(worker)

    prepare = Birth(threads=1).after(fails)
    assert prepare is not None
    with pytest.raises(ValueError, match="2"):
        prepare(2)


def test_a_spawned_worker_gets_what_was_asked_for_when_it_was_born(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = workers.WorkerLoop(_utils.worker.__name__, rings_directory="rings", launch=2, close_fds=())
    monkeypatch.setattr(workers.birth, "threads", 1)
    assert pickle.loads(pickle.dumps(loop)).birth.threads == 1


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="loaded libraries of Linux")
def test_a_library_that_is_loaded_already_takes_the_number() -> None:
    pytest.importorskip("numpy")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "2"}
    told = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True, env=environment
    ).stdout.split()
    assert set(told) == {"1"}


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="affinity of Linux")
def test_the_cpus_that_were_given_are_those_of_the_parent() -> None:
    assert worker_birth.given_cpus() == tuple(sorted(os.sched_getaffinity(os.getppid())))
