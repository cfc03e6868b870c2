"""What stands where torch's worker loop stood."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

from torch.utils.data import _utils

from pindiag.probe import workers


def test_loop_survives_pickling() -> None:
    loop = workers.WorkerLoop(_utils.worker.__name__, rings_directory="rings", launch=2, close_fds=(3,))
    again = pickle.loads(pickle.dumps(loop))
    assert (again.rings_directory, again.launch) == ("rings", 2)
    assert again.close_fds == ()  # a spawned worker inherits none
    assert again.original is _utils.worker._worker_loop


def test_workers_that_are_threads_are_left_alone(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    loop = workers.WorkerLoop(_utils.worker.__name__, rings_directory=str(tmp_path), launch=1, close_fds=(writer,))
    loop.original = lambda *args: args
    assert loop("dataset", 3) == ("dataset", 3)
    assert list(tmp_path.iterdir()) == []
    assert os.write(writer, b"still open") == 10
    os.close(reader)
    os.close(writer)
