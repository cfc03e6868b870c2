"""What a tweak changes in workers when they are born: their native threads, the CPUs that they are bound to."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
"""What libraries read when they are loaded."""

SETTERS = (
    ("openblas", "openblas_set_num_threads"),
    ("openblas", "openblas_set_num_threads64_"),
    ("openblas", "scipy_openblas_set_num_threads"),
    ("openblas", "scipy_openblas_set_num_threads64_"),
    ("gomp", "omp_set_num_threads"),
    ("iomp", "omp_set_num_threads"),
    ("libomp", "omp_set_num_threads"),
    ("mkl_rt", "MKL_Set_Num_Threads"),
    ("blis", "bli_thread_set_num_threads"),
)
"""Part of a library's file name, and its function that takes the number of threads; OpenBLAS has it by any of four
names, as it was built."""


class Birth:
    """What workers that are born from now on do first; pickled for a spawned one.

    Attributes:
        threads: native threads of each worker; None: as they are.
        cpus: CPUs to bind each worker to; None: as it is bound.
    """

    def __init__(self, threads: int | None = None, cpus: tuple[int, ...] | None = None) -> None:
        self.threads = threads
        self.cpus = cpus

    def after(self, initialise: Callable[[int], Any] | None) -> Callable[[int], Any] | None:
        """The script's own worker_init_fn, and then the changes; itself where nothing is to change."""
        if self.threads is None and self.cpus is None:
            return initialise

        def prepare(worker: int) -> None:
            if initialise is not None:
                initialise(worker)
            self.apply()

        return prepare

    def apply(self) -> None:
        """In a worker, for its rest."""
        if self.threads is not None:
            limit_threads(self.threads)
        if self.cpus is not None and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, self.cpus)


def given_cpus() -> tuple[int, ...] | None:
    """The CPUs that the target was given: those of the process that started it; None where nothing tells."""
    try:
        return tuple(sorted(os.sched_getaffinity(os.getppid())))
    except (AttributeError, OSError):
        return None


def limit_threads(number: int) -> None:
    """Give the native libraries of this process so many threads, those that are loaded later included."""
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(number)
    for path in loaded_libraries():
        _set(path, number)
    cv2 = sys.modules.get("cv2")
    if cv2 is not None and hasattr(cv2, "setNumThreads"):
        cv2.setNumThreads(number)


def loaded_libraries() -> list[str]:
    """Files of the libraries in this process that are known to start threads; [] where the platform does not tell."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            paths = {line.split(None, 5)[5].strip() for line in maps if "/" in line and ".so" in line}
    except (OSError, IndexError):
        return []
    return sorted(path for path in paths if any(part in os.path.basename(path) for part, _ in SETTERS))


def _set(path: str, number: int) -> None:
    name = os.path.basename(path)
    with contextlib.suppress(OSError):
        library = ctypes.CDLL(path)  # loaded already: this gives another handle, no second copy
        for part, function in SETTERS:
            setter = getattr(library, function, None) if part in name else None
            if setter is not None:
                setter(ctypes.c_int(number))
