"""A treatment by the parts of the probe that apply it."""

from __future__ import annotations

from typing import Any

LOADER_ARGUMENTS = ("num_workers", "pin_memory", "prefetch_factor", "persistent_workers", "batch_size")
REPLAYED = ("compute_only", "host_batch")


class Treatment:
    """What a block, or a whole launch, runs under.

    Args:
        told: the parent's `Treatment`, as plain JSON; None: the script as written.
        intraop_threads: the main thread's number in a fresh process under it, where the parent knows it.

    Attributes:
        loader: the changed arguments of DataLoader.
        refused: names of changes that cannot be made, with the reason.
        how: in what way they were made.
        intraop_threads: the main thread's number, set once the first batch is there.
        fewer_threads: a smaller one for this treatment alone.
        worker_threads: native threads of each worker.
        worker_affinity: whether workers are bound to the CPUs that the target was given at its start.
    """

    def __init__(self, told: dict[str, Any] | None, intraop_threads: int | None = None) -> None:
        changes: dict[str, Any] = told["changes"] if told else {}
        self.id: str | None = told["id"] if told else None
        self.ablation: str | None = told.get("ablation") if told else None
        self.changes = changes
        self.intraop_threads: int | None = changes.get("intraop_threads", intraop_threads)
        self.fewer_threads: int | None = changes.get("fewer_intraop_threads")
        self.worker_threads: int | None = changes.get("worker_threads")
        self.worker_affinity = bool(changes.get("worker_affinity"))
        self.non_blocking: bool | None = changes.get("non_blocking")
        self.lazy_sync = bool(changes.get("lazy_sync"))
        self.loader = {} if self.replayed else {name: changes[name] for name in LOADER_ARGUMENTS if name in changes}
        self.refused: dict[str, str] = {}
        self.how: str | None = None

    @property
    def replayed(self) -> bool:
        """Whether its batches are replayed, so that no loader runs beside the script."""
        return self.ablation in REPLAYED

    @property
    def applied(self) -> dict[str, Any]:
        """The changes that were made."""
        return {name: value for name, value in self.changes.items() if name not in self.refused}
