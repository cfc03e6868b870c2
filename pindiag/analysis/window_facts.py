"""Facts from a profiler window."""

from __future__ import annotations

from collections.abc import Iterator

from pindiag.analysis.evidence import TrialEvidence
from pindiag.analysis.fact import fact as _fact
from pindiag.analysis.intervals import length
from pindiag.analysis.operator_waits import OperatorWait, operator_waits
from pindiag.analysis.trace import is_runtime
from pindiag.model import Fact, GpuStep, Scalar

KINDS = "the trace does not tell pinned from pageable"
NO_CALLS = "the trace shows no call to the accelerator's runtime"
NO_WAIT = "no call waited for the device in the window"
NAMED_OPERATORS = 5
IDLE_CAUSES = ("wait", "synchronise", "launch", "operators", "python")


def of_window(trial: TrialEvidence) -> Iterator[Fact]:
    """What the trace tells."""
    yield from of_gpu(trial)
    yield from of_script(trial)
    yield from of_waits(trial)


def of_gpu(trial: TrialEvidence) -> Iterator[Fact]:
    """What the GPU did, and what kept it idle."""
    gpu = trial.gpu
    step: GpuStep | None = None if isinstance(gpu, str) else gpu
    source = "no trace" if trial.window is None else f"trace {trial.window.trace}"
    absent = {"pageable_bytes": KINDS, "pinned_bytes": KINDS, "launch_share": NO_CALLS}

    def fact(name: str, value: Scalar, unit: str | None, reason: str) -> Fact:
        return _fact(name, value, unit, source, gpu if isinstance(gpu, str) else reason, trial=trial.id)

    for name, field, unit in (
        ("gpu_busy_share", "busy_share", "1"),
        ("gpu_idle_share", "idle_share", "1"),
        ("gpu_kernel_ms", "kernel_ms", "ms"),
        ("gpu_copy_ms", "copy_ms", "ms"),
        ("gpu_overlap_share", "overlap_share", "1"),
        ("gpu_copy_gb_per_s", "copy_gb_per_s", "GB/s"),
        ("gpu_pageable_bytes", "pageable_bytes", "B"),
        ("gpu_pinned_bytes", "pinned_bytes", "B"),
        ("gpu_launches", "launches", "launches"),
        ("gpu_launch_share", "launch_share", "1"),
        ("gpu_synchronise_ms", "synchronise_ms", "ms"),
    ):
        reason = absent.get(field, "the window holds no host-to-device copy")
        yield fact(name, getattr(step, field, None), unit, reason)
    idle = None if step is None else step.idle
    for cause in IDLE_CAUSES:
        yield fact(f"gpu_idle_{cause}_share", getattr(idle, cause, None), "1", NO_CALLS)
    longest = step.longest_kernels[0] if step is not None and step.longest_kernels else None
    yield fact("gpu_longest_kernel", getattr(longest, "name", None), None, "its kernels took no time")
    yield fact("gpu_longest_kernel_share", getattr(longest, "share", None), "1", "its kernels took no time")


def of_script(trial: TrialEvidence) -> Iterator[Fact]:
    """What `script` is made of, milliseconds of a mean step; the profiler makes all but kernels slower."""
    events, ran = trial.trace, trial.window
    source = "no trace" if ran is None else f"trace {ran.trace}, slower than the counted blocks"
    reason = events if isinstance(events, str) else "the trace marks no step"
    parts: dict[str, float] = {}
    if trial.main_thread is not None:
        stages, steps = trial.main_thread.stages, trial.main_thread.steps
        parts = {name: length(found) / steps / 1e3 for name, found in stages.items()}
    no_calls = None if trial.run.has_accelerator else "no accelerator"
    for name in ("operators", "launch", "backward", "python"):
        unseen = no_calls if name == "launch" else None
        value = None if unseen else parts.get(name)
        yield _fact(f"script_{name}_ms", value, "ms", source, unseen or reason, trial=trial.id)


def of_waits(trial: TrialEvidence) -> Iterator[Fact]:
    """Waits for the device by operator, a mean step of the window: also what the probe does not hook."""
    source = "no trace" if trial.window is None else f"trace {trial.window.trace}"
    unseen, waits, steps = _waits(trial)
    values: tuple[tuple[str, Scalar, str | None], ...] = (
        ("window_syncs_per_step", sum(wait.calls for wait in waits) / steps, "calls"),
        ("window_sync_ms_per_step", sum(wait.us for wait in waits) / steps / 1e3, "ms"),
        ("window_sync_operators", ", ".join(_said(wait, steps) for wait in waits[:NAMED_OPERATORS]) or None, None),
    )
    for name, value, unit in values:
        yield _fact(name, None if unseen else value, unit, source, unseen or NO_WAIT, trial=trial.id)


def _waits(trial: TrialEvidence) -> tuple[str | None, list[OperatorWait], int]:
    """Why they are not known, or the waits and the window's steps."""
    events = trial.trace
    if not trial.run.has_accelerator:
        return "no accelerator", [], 1
    if isinstance(events, str):
        return events, [], 1
    main = trial.main_thread
    if main is None:
        return "the trace marks no step", [], 1
    if not any(is_runtime(event) for event in events):
        return NO_CALLS, [], 1
    events = [event for event in events if main.start <= event.ts < main.end]
    return None, operator_waits(events, main), main.steps


def _said(wait: OperatorWait, steps: int) -> str:
    return f"{wait.name} ({wait.calls / steps:.3g} a step, {wait.us / steps / 1e3:.3g} ms)"
