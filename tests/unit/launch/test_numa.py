from __future__ import annotations

from pathlib import Path

import pytest

from pindiag.launch import numa

BUS = "00000000:18:00.0"


def machine(root: Path, nodes: dict[int, str], gpu_node: str | None) -> Path:
    for node, cpus in nodes.items():
        folder = root / f"sys/devices/system/node/node{node}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(cpus + "\n")
    if gpu_node is not None:
        folder = root / "sys/bus/pci/devices/0000:18:00.0"
        folder.mkdir(parents=True)
        (folder / "numa_node").write_text(gpu_node + "\n")
    return root


def test_cpus_by_node(tmp_path: Path) -> None:
    machine(tmp_path, {0: "0-2,8", 1: "3-4", 2: ""}, None)
    assert numa.cpus_by_node(tmp_path) == {"0": [0, 1, 2, 8], "1": [3, 4]}


def test_no_numa(tmp_path: Path) -> None:
    assert numa.cpus_by_node(tmp_path) is None


@pytest.mark.parametrize(
    ("nodes", "told", "node"),
    [
        ({0: "0", 1: "1"}, "1", 1),
        ({0: "0", 1: "1"}, "-1", None),
        ({0: "0", 1: "1"}, None, None),
        ({0: "0-3"}, "-1", 0),
        ({}, None, None),
    ],
)
def test_node_of_a_gpu(tmp_path: Path, nodes: dict[int, str], told: str | None, node: int | None) -> None:
    root = machine(tmp_path, nodes, told)
    assert numa.node_of(BUS, numa.cpus_by_node(root), root) == node
