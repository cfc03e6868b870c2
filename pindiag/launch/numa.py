"""NUMA nodes: which CPUs they have, and which of them a GPU hangs on."""

from __future__ import annotations

import re
from pathlib import Path


def cpus_by_node(root: Path = Path("/")) -> dict[str, list[int]] | None:
    """CPUs of each node that has some; None where the kernel does not tell."""
    found = {}
    for folder in sorted((root / "sys/devices/system/node").glob("node[0-9]*")):
        cpus = _cpu_list(_text(folder / "cpulist"))
        if cpus:
            found[folder.name.removeprefix("node")] = cpus
    return found or None


def node_of(pci_bus_id: str, nodes: dict[str, list[int]] | None, root: Path = Path("/")) -> int | None:
    """The node that a PCI device hangs on; None where the firmware does not tell.

    Args:
        pci_bus_id: as NVML writes it, "00000000:18:00.0".
        nodes: what `cpus_by_node` gave; with one node there is no choice.
        root: where sysfs is looked for.
    """
    domain, _, place = pci_bus_id.lower().partition(":")
    text = _text(root / "sys/bus/pci/devices" / f"{domain[-4:]}:{place}" / "numa_node").strip()
    if re.fullmatch(r"\d+", text):
        return int(text)
    return int(next(iter(nodes))) if nodes is not None and len(nodes) == 1 else None


def _cpu_list(text: str) -> list[int]:
    """A list such as 0-3,8 as numbers."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        if found := re.fullmatch(r"(\d+)(?:-(\d+))?", part):
            cpus += range(int(found[1]), int(found[2] or found[1]) + 1)
    return cpus


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
