from pathlib import Path

import pytest

from pindiag.launch.heat import SPENT, CpuHeat


def machine(root: Path, packages: dict[str, tuple[str, str | None]]) -> Path:
    for cpu, (package, spent_ms) in packages.items():
        folder = root / "sys/devices/system/cpu" / cpu
        (folder / "topology").mkdir(parents=True)
        (folder / "topology/physical_package_id").write_text(package + "\n")
        if spent_ms is not None:
            (folder / SPENT).parent.mkdir()
            (folder / SPENT).write_text(spent_ms + "\n")
    return root


def test_each_package_counts_once(tmp_path: Path) -> None:
    heat = CpuHeat(machine(tmp_path, {"cpu0": ("0", "1000"), "cpu1": ("0", "1000"), "cpu2": ("1", "4000")}))
    assert heat.spent_s() == pytest.approx(2.5)
    (tmp_path / "sys/devices/system/cpu/cpu2" / SPENT).write_text("5000\n")
    assert heat.spent_s() == pytest.approx(3.0)


def test_where_the_kernel_does_not_count_it_nothing_is_said(tmp_path: Path) -> None:
    assert CpuHeat(machine(tmp_path, {"cpu0": ("0", None)})).spent_s() is None
    assert CpuHeat(tmp_path / "elsewhere").spent_s() is None
