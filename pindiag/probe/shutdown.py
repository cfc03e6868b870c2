"""Shutting one of torch's iterators down while the target still holds it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from torch.utils.data._utils import signal_handling

GRACE_S = 2.0
"""How long workers may take to finish what they are at before they are killed."""

_HOLDING = ("_data_queue", "_worker_result_queue", "_index_queues", "_task_info", "_dataset_fetcher")
"""What keeps batches, descriptors or the dataset's own iterator alive as long as the target's loop does."""


def shut_down(iterator: Any) -> None:
    """End its pin thread and its workers, and let go of what it had fetched; it gives nothing any more."""
    workers = iterator.__dict__.get("_workers")
    if workers and not iterator._shutdown:
        _shut_down(iterator, workers)
    for name in _HOLDING:
        iterator.__dict__.pop(name, None)


def _shut_down(iterator: Any, workers: Sequence[Any]) -> None:
    # torch's SIGCHLD handler would turn the end of a killed worker into a RuntimeError of the target
    signal_handling._remove_worker_pids(id(iterator))  # type: ignore[attr-defined]
    iterator._worker_pids_set = False
    if hasattr(iterator, "_pin_memory_thread"):
        # before any worker may be killed: one that dies while it sends would hold the thread for good
        iterator._pin_memory_thread_done_event.set()
        iterator._worker_result_queue.put((None, None))
        iterator._pin_memory_thread.join()
    limit = threading.Timer(GRACE_S, _kill, [workers])
    limit.daemon = True
    limit.start()
    try:
        iterator._shutdown_workers()
    finally:
        limit.cancel()
        limit.join()
        _kill(workers)
        for worker in workers:
            worker.join(GRACE_S)


def _kill(workers: Sequence[Any]) -> None:
    for worker in workers:
        worker.kill()
