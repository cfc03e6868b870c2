"""The machine, read once when a run starts."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from pindiag.launch import cgroups, numa
from pindiag.launch.cpus import usable_cpus
from pindiag.launch.nvml import Nvml
from pindiag.launch.offered import not_offered
from pindiag.launch.reckon import FreeMemory
from pindiag.model import Machine, Scalar

_UNTOLD = (OSError, RuntimeError, AttributeError, ValueError, LookupError)
"""What psutil and the standard library raise where a platform lacks a reading or /proc is unreadable or damaged."""


class Memory(NamedTuple):
    """Of the whole machine."""

    total_bytes: int
    available_bytes: int


def read_machine(nvml: Nvml, root: Path = Path("/")) -> Machine:
    """What the report says of the machine; what cannot be read is null, with its reason in `missing`."""
    missing: dict[str, str] = {}
    cpus, reason = usable_cpus(root)
    memory = _memory()
    shm = _ask(lambda: os.statvfs(root / "dev/shm"), missing, "shm_bytes", "there is no /dev/shm")
    nodes = _ask(lambda: numa.cpus_by_node(root), missing, "numa_cpus", "the platform does not tell NUMA nodes")
    affinity = _ask(lambda: sorted(os.sched_getaffinity(0)), missing, "affinity", "the platform has no affinity masks")
    gpus = [_placed(gpu, nodes, affinity, root) for gpu in nvml.gpus()]
    if nvml.reason is not None:
        missing["gpus"] = nvml.reason
    physical = _ask(lambda: psutil.cpu_count(logical=False), missing, "physical_cpus", "the platform does not tell")
    return Machine(
        launch=0,
        t_ns=time.monotonic_ns(),
        platform=platform.platform(),
        kernel=platform.release(),
        logical_cpus=os.cpu_count() or 1,
        physical_cpus=physical,
        usable_cpus=cpus,
        usable_cpus_reason=reason,
        memory_bytes=memory.total_bytes,
        memory_available_bytes=memory.available_bytes,
        cgroup_memory_limit_bytes=cgroups.memory_limit_bytes(root),
        swap_bytes=_ask(lambda: psutil.swap_memory().total, missing, "swap_bytes", "the platform does not tell") or 0,
        shm_bytes=shm and shm.f_frsize * shm.f_blocks,
        shm_free_bytes=shm and shm.f_frsize * shm.f_bavail,
        open_files_limit=_limit("RLIMIT_NOFILE", missing, "open_files_limit"),
        locked_memory_limit_bytes=_limit("RLIMIT_MEMLOCK", missing, "locked_memory_limit_bytes"),
        gpus=gpus,
        fingerprint=_fingerprint(cpus, memory.total_bytes, [str(gpu["name"]) for gpu in gpus], root),
        missing=missing,
        not_sampled=not_offered(root),
        affinity=affinity,
        cpu_quota=cgroups.cpu_quota(root),
        numa_cpus=nodes,
    )


def _placed(
    gpu: dict[str, Scalar], nodes: dict[str, list[int]] | None, affinity: list[int] | None, root: Path
) -> dict[str, Scalar]:
    """A GPU with its NUMA node in place of its PCI address, which would tell machines apart."""
    address = gpu.pop("pci_bus_id")
    node = numa.node_of(address, nodes, root) if isinstance(address, str) else None
    local = None if node is None or nodes is None or affinity is None else nodes.get(str(node), [])
    shared = None if local is None else len(set(local) & set(affinity or []))
    return {**gpu, "numa_node": node, "local_cpus": shared}


def free_memory(root: Path = Path("/")) -> FreeMemory:
    """What is free now."""
    shm = _ask(lambda: os.statvfs(root / "dev/shm"), {}, "", "")
    return FreeMemory(
        available_bytes=_memory().available_bytes,
        shm_bytes=shm and shm.f_frsize * shm.f_bavail,
        cgroup_bytes=cgroups.memory_free_bytes(root),
        shm_used_bytes=shm and shm.f_frsize * (shm.f_blocks - shm.f_bfree),
    )


def memory_bytes() -> int:
    """The machine's memory."""
    return _memory().total_bytes


def shm_in_words(used_bytes: int | None, root: Path = Path("/")) -> str | None:
    """How large /dev/shm is and how much of it was used; None where that is not known."""
    shm = _ask(lambda: os.statvfs(root / "dev/shm"), {}, "", "")
    if shm is None or used_bytes is None:
        return None
    return f"it holds {shm.f_blocks * shm.f_frsize / 1e6:.0f} MB, {used_bytes / 1e6:.0f} MB were seen in use"


def _memory() -> Memory:
    """As psutil tells; where /proc/meminfo does not, as the C library does, to which page cache is not available."""
    try:
        told = psutil.virtual_memory()
        return Memory(told.total, told.available)
    except _UNTOLD:
        page = os.sysconf("SC_PAGE_SIZE")
        return Memory(page * os.sysconf("SC_PHYS_PAGES"), page * os.sysconf("SC_AVPHYS_PAGES"))


def _ask(read: Callable[[], Any], missing: dict[str, str], key: str, reason: str) -> Any:
    try:
        found = read()
    except _UNTOLD:
        found = None
    if found is None:
        missing[key] = reason
    return found


def _limit(name: str, missing: dict[str, str], key: str) -> int | None:
    try:
        import resource

        soft, _ = resource.getrlimit(getattr(resource, name))
    except (ImportError, AttributeError):
        missing[key] = "the platform has no such limit"
        return None
    except (OSError, ValueError) as error:
        missing[key] = f"the limit cannot be read: {error}"
        return None
    return None if soft == resource.RLIM_INFINITY else soft


def _fingerprint(cpus: int, memory_bytes: int, gpus: list[str], root: Path) -> str:
    """Equal for equal machines: processor, CPUs, memory to the GiB and GPUs, but no host name and no serial number."""
    parts = [platform.machine(), _processor(root), str(cpus), str(round(memory_bytes / 2**30)), *gpus]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _processor(root: Path) -> str:
    try:
        lines = (root / "proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
