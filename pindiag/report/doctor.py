"""`pindiag doctor` as text: titled tables of strings, and sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pindiag import figures
from pindiag.doctor_model import CopySize, Doctor, HandOff, Spread, Torch
from pindiag.model import Machine, Scalar

NOT_KNOWN = "not known"


class Section(NamedTuple):
    """A part of the text: a title, a table under it, and what is to be said of it."""

    title: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    notes: Sequence[str] = ()


def sections(found: Doctor) -> list[Section]:
    """Everything that was found, the limits first."""
    return [
        _limits(found),
        _machine(found),
        _torch(found),
        _copies(found),
        _hand_off(found),
        _faults(found),
    ]


def _limits(found: Doctor) -> Section:
    if not found.limits:
        return Section("Limits", notes=["None found in what could be read and measured."])
    return Section("Limits", notes=[f"- {limit.what} {limit.do}" for limit in found.limits])


def _machine(found: Doctor) -> Section:
    machine = found.machine
    rows = [
        ("platform", machine.platform),
        ("CPUs", _cpus(machine)),
        (
            "memory",
            f"{figures.byte_size(machine.memory_bytes)}, {figures.byte_size(machine.memory_available_bytes)} free",
        ),
        ("memory limit", _size(machine.cgroup_memory_limit_bytes, "none")),
        ("swap", figures.byte_size(machine.swap_bytes)),
        ("/dev/shm", _shm(machine)),
        ("open files", _limit(machine, "open_files_limit", figures.count)),
        ("locked memory", _limit(machine, "locked_memory_limit_bytes", figures.byte_size)),
        *[(f"GPU {number}", _gpu(gpu)) for number, gpu in enumerate(machine.gpus)],
    ]
    if not machine.gpus:
        rows.append(("GPU", machine.missing.get("gpus", "none")))
    return Section("Machine", rows=rows)


def _cpus(machine: Machine) -> str:
    cores = f" on {machine.physical_cpus} cores" if machine.physical_cpus is not None else ""
    by = "" if machine.usable_cpus_reason == "all" else f" (limited by {machine.usable_cpus_reason})"
    return f"{machine.usable_cpus} usable of {machine.logical_cpus}{cores}{by}"


def _shm(machine: Machine) -> str:
    if machine.shm_bytes is None or machine.shm_free_bytes is None:
        return machine.missing.get("shm_bytes", NOT_KNOWN)
    return f"{figures.byte_size(machine.shm_bytes)}, {figures.byte_size(machine.shm_free_bytes)} free"


def _limit(machine: Machine, key: str, shown: Callable[[float], str]) -> str:
    value = getattr(machine, key)
    return machine.missing.get(key, "unlimited") if value is None else shown(value)


def _size(value: int | None, otherwise: str) -> str:
    return otherwise if value is None else figures.byte_size(value)


def _gpu(gpu: dict[str, Scalar]) -> str:
    memory = gpu["memory_bytes"]
    words = [
        str(gpu["name"] or NOT_KNOWN),
        figures.byte_size(memory) if isinstance(memory, int) else "memory not known",
        f"driver {gpu['driver'] or NOT_KNOWN}",
        _link(gpu),
    ]
    return ", ".join(words)


def _link(gpu: dict[str, Scalar]) -> str:
    if gpu["pcie_gen"] is None or gpu["pcie_width"] is None:
        return "PCIe link not known"
    most = f"gen {gpu['pcie_gen_max'] or '?'} x{gpu['pcie_width_max'] or '?'}"
    when = "under load" if gpu["pcie_under_load"] else "read while idle, when a link may slow down"
    return f"PCIe gen {gpu['pcie_gen']} x{gpu['pcie_width']} of at most {most} ({when})"


def _torch(found: Doctor) -> Section:
    torch = found.torch
    if torch is None:
        return Section("torch", rows=[("interpreter", found.python)], notes=[_why(found, "torch")])
    built = torch.cuda_version or torch.hip_version
    kind = "CUDA" if torch.cuda_version else "ROCm"
    rows = [
        ("interpreter", f"{found.python}, Python {torch.python_version}"),
        ("version", f"{torch.version}, built {f'for {kind} {built}' if built else 'without CUDA'}"),
        ("accelerator", _accelerator(found, torch)),
        ("intra-op threads", str(torch.intraop_threads)),
        ("workers", f"started by {torch.start_method}, tensors shared by {torch.sharing_strategy}"),
    ]
    return Section("torch", rows=rows)


def _accelerator(found: Doctor, torch: Torch) -> str:
    if torch.accelerator is None:
        return f"none: {torch.no_accelerator}"
    return torch.accelerator if found.copies is None else f"{torch.accelerator}, {found.copies.device_name}"


def _copies(found: Doctor) -> Section:
    title = "Copies from host to GPU, and pinning"
    if found.copies is None:
        return Section(title, notes=[_why(found, "copies")])
    header = ("size", "pageable", "pinned", "first pin_memory()", "cached pin_memory()")
    return Section(
        title,
        header,
        [_copy(size) for size in found.copies.sizes],
        [
            "Medians. Host clock between two device synchronisations around consecutive copies: pageable ones block, "
            "pinned ones are non_blocking. Sources begin on a page and are touched; pageable ones take turns over more "
            "memory than the CPU caches. A first pin_memory() allocates, a cached one finds a block of its size; both "
            "copy."
        ],
    )


def _copy(size: CopySize) -> tuple[str, ...]:
    if size.reason is not None:
        return (_binary(size.bytes), f"not measured: {size.reason}", "", "", "")
    rates = (_rate(size.pageable_bytes_per_s), _rate(size.pinned_bytes_per_s))
    return (_binary(size.bytes), *rates, _ms(size.first_pin_ms), _ms(size.cached_pin_ms))


def _hand_off(found: Doctor) -> Section:
    title = "Hand-off of batches by one worker, by their size"
    reasons = [
        f"{each.key.rpartition('.')[2]}: {each.reason}." for each in found.not_measured if "hand_off" in each.key
    ]
    if not found.hand_off:
        return Section(title, notes=reasons)
    sizes = [_binary(size.batch_bytes) for size in found.hand_off[0].sizes]
    header = ("start method", "first batch after", *sizes)
    method = (
        "Medians. One tensor a batch, copied into shared memory by the stock collate function and mapped, not read, "
    )
    return Section(
        title,
        header,
        [_started(each, found) for each in found.hand_off],
        [f"{method}by the main process; the dataset costs nothing.", *reasons],
    )


def _started(each: HandOff, found: Doctor) -> tuple[str, ...]:
    usual = found.torch is not None and found.torch.start_method == each.start_method
    rates = [_rate(size.bytes_per_s) if size.reason is None else f"not measured: {size.reason}" for size in each.sizes]
    return (f"{each.start_method}{' (default)' * usual}", _wait(each.startup_s), *rates)


def _faults(found: Doctor) -> Section:
    title = "Known faults of these versions"
    if found.torch is None:
        return Section(title, notes=[_why(found, "torch")])
    if not found.known_faults:
        return Section(title, notes=["None known to pindiag."])
    notes = [f"- {each.versions}: {each.what} {each.do} Source: {each.source}." for each in found.known_faults]
    return Section(title, notes=notes)


def _why(found: Doctor, key: str) -> str:
    reason = next((each.reason for each in found.not_measured if each.key == key), NOT_KNOWN)
    return f"Not measured: {reason}."


def _rate(spread: Spread | None) -> str:
    return "" if spread is None else f"{figures.byte_size(spread.median)}/s"


def _wait(seconds: float) -> str:
    return figures.duration(seconds) if seconds >= 1 else f"{figures.significant(1000 * seconds, 2)} ms"


def _ms(spread: Spread | None) -> str:
    return "" if spread is None else f"{figures.significant(spread.median)} ms"


def _binary(size_bytes: int) -> str:
    """A power of two as it is meant: 64 KiB."""
    return f"{size_bytes >> 20} MiB" if size_bytes >= 1 << 20 else f"{size_bytes >> 10} KiB"
