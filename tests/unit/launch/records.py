"""Records as a launch hears them."""

from __future__ import annotations

import msgspec

from pindiag.model import AnyRecord, Configuration, FirstStep, LoaderChosen, LoaderIterated, LoaderKey

GB = 10**9


def configuration(workers: int, prefetch: int | None = None) -> Configuration:
    return Configuration(
        num_workers=workers,
        pin_memory=False,
        non_blocking=None,
        prefetch_factor=prefetch,
        persistent_workers=False,
        batch_size=64,
    )


def found(workers: int, batch_bytes: int = GB) -> LoaderChosen:
    """A loader with batches of 64 samples."""
    return LoaderChosen(
        launch=1,
        t_ns=0,
        loader=0,
        key=LoaderKey(location="train.py:7", ordinal=0),
        why="the only one",
        others=[],
        configuration=configuration(workers),
        batches_per_epoch=None,
        dataset_samples=None,
        batch_samples=64,
        sample_bytes=batch_bytes // 64,
        batch_bytes=batch_bytes,
        tensors=1,
        iterable=False,
        dataset_class="Data",
        start_method="fork",
        accelerator=None,
        device=None,
        device_name=None,
        intraop_threads=None,
    )


def first_step(launch: int, t_s: float) -> AnyRecord:
    return FirstStep(launch=launch, t_ns=int(t_s * 1e9))


def block(launch: int, t_s: float) -> AnyRecord:
    fields = {
        "type": "block", "launch": launch, "t_ns": int(t_s * 1e9), "block": launch, "trial": "b", "round": 1,
        "settle_steps": 1, "steps": 1, "samples": 1, "started_ns": 0, "ended_ns": 1, "seconds": 1.0, "gap_s": 0.0,
        "status": "counted", "reason": None, "wait_ms": 0.0, "wait_cpu_ms": 0.0, "transfer_ms": 0.0,
        "synchronise_ms": 0.0, "optimizer_ms": 0.0, "main_cpu_ms": 0.0, "step_ms": [], "step_wait_ms": [],
        "transfers": [], "syncs": [], "pin_thread": None, "host_allocator": None, "missing": {},
        "probe_us_per_step": 0.0,
    }  # fmt: skip
    return msgspec.convert(fields, AnyRecord)


def iterator(first_batch_ms: float | None) -> LoaderIterated:
    return LoaderIterated(
        launch=1,
        t_ns=0,
        loader=0,
        iterator=0,
        configuration=configuration(2),
        startup_ms=1.0,
        first_batch_ms=first_batch_ms,
        start_method="spawn",
        worker_pids=[],
    )
