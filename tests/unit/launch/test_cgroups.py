from pathlib import Path

import pytest

from pindiag.launch import cgroups
from pindiag.launch.cpus import usable_cpus
from pindiag.launch.sampler import MachineReader


def grow(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


V2 = {"proc/self/cgroup": "0::/user/job\n", "sys/fs/cgroup/cgroup.controllers": "cpu io memory\n"}
V1 = {"proc/self/cgroup": "5:cpu,cpuacct:/job/step\n4:memory:/job/step\n1:name=systemd:/x\n0::/\n"}
JOB = "sys/fs/cgroup/user/job/"
USER = "sys/fs/cgroup/user/"

QUOTAS = {
    "no files at all": ({}, None),
    "v2 without a limit": ({**V2, JOB + "cpu.max": "max 100000\n"}, None),
    "v2 own group": ({**V2, JOB + "cpu.max": "150000 100000\n"}, 1.5),
    "v2 a parent is tighter": ({**V2, JOB + "cpu.max": "400000 100000\n", USER + "cpu.max": "200000 100000\n"}, 2.0),
    "v2 path of the host, container's own mount": (
        {**V2, "proc/self/cgroup": "0::/kubepods/pod1/c1\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"},
        0.5,
    ),
    "v1 joined controllers": (
        {
            **V1,
            "sys/fs/cgroup/cpu,cpuacct/job/step/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "300000\n",
            "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
        },
        3.0,
    ),
    "v1 alias folder": (
        {**V1, "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "20000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "10000\n"},
        2.0,
    ),
    "damaged": ({**V2, JOB + "cpu.max": "?\n"}, None),
}


@pytest.mark.parametrize("case", QUOTAS)
def test_cpu_quota(tmp_path: Path, case: str) -> None:
    files, quota = QUOTAS[case]
    assert cgroups.cpu_quota(grow(tmp_path, files)) == quota


@pytest.mark.parametrize(
    ("logical", "allowed", "quota", "expected"),
    [
        (8, 8, None, (8, "all")),
        (8, 3, None, (3, "affinity")),
        (8, 8, "150000 100000", (2, "cgroup quota")),
        (8, 2, "400000 100000", (2, "affinity")),
        (8, 8, "10000 100000", (1, "cgroup quota")),
        (8, 8, "800000 100000", (8, "all")),
    ],
)
def test_usable_cpus(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    logical: int,
    allowed: int,
    quota: str | None,
    expected: tuple[int, str],
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: logical)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(allowed)), raising=False)
    assert usable_cpus(grow(tmp_path, V2 | ({} if quota is None else {JOB + "cpu.max": quota}))) == expected


def test_usable_cpus_where_there_is_no_affinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    assert usable_cpus(tmp_path) == (6, "all")


def test_memory_limit_is_the_tightest(tmp_path: Path) -> None:
    files = {
        JOB + "memory.max": "max\n",
        JOB + "memory.current": "700\n",
        USER + "memory.max": "1000\n",
        USER + "memory.current": "800\n",
        USER + "memory.stat": "anon 500\ninactive_file 300\n",
    }
    root = grow(tmp_path, V2 | files)
    assert cgroups.memory_limit_bytes(root) == 1000
    assert cgroups.memory_free_bytes(root) == 500


def test_memory_of_version_1(tmp_path: Path) -> None:
    folder = "sys/fs/cgroup/memory/job/step/"
    files = {folder + "memory.limit_in_bytes": "2000\n", folder + "memory.usage_in_bytes": "500\n"}
    root = grow(tmp_path, V1 | files | {"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"})
    assert cgroups.memory_limit_bytes(root) == 2000
    assert cgroups.memory_free_bytes(root) == 1500
    assert cgroups.memory_limit_bytes(tmp_path / "nowhere") is None
    assert cgroups.memory_free_bytes(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("files", "kills"),
    [
        ({**V2, JOB + "memory.events": "oom 3\noom_kill 2\n"}, 2),
        ({**V1, "sys/fs/cgroup/memory/job/memory.oom_control": "under_oom 0\noom_kill 4\n"}, 4),
        ({"proc/vmstat": "nr_free 1\noom_kill 5\n"}, 5),
        ({}, None),
    ],
)
def test_out_of_memory_kills(tmp_path: Path, files: dict[str, str], kills: int | None) -> None:
    assert cgroups.out_of_memory_kills(grow(tmp_path, files)) == kills


@pytest.mark.parametrize(
    ("files", "reached"),
    [
        ({"memory.max": "9000000\n", "memory.events": "max 9\noom 2\noom_kill 1\n"}, True),
        ({"memory.max": "9000000\n", "memory.events": "max 9\noom 0\n"}, False),  # page cache alone made room
        ({"memory.max": "max\n", "memory.events": "oom 2\n"}, False),  # it was a limit above
        ({"memory.limit_in_bytes": "9000000\n", "memory.max_usage_in_bytes": "8900000\n"}, True),
        ({"memory.limit_in_bytes": "9000000\n", "memory.max_usage_in_bytes": "7000000\n"}, False),
        ({}, False),
    ],
)
def test_whether_a_limit_was_reached(tmp_path: Path, files: dict[str, str], reached: bool) -> None:
    assert cgroups.limit_reached(grow(tmp_path, files)) == reached


def test_machine_counters(tmp_path: Path) -> None:
    pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\nfull avg10=0.00 total=1\n"
    files = {
        "proc/meminfo": "MemTotal: 100 kB\nMemAvailable: 60 kB\nCached: 7 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n",
        "proc/stat": "cpu  100 20 30 4000 50 6 4 9 0 0\ncpu0 1 2\n",
        **{f"proc/pressure/{what}": pressure.format(n) for what, n in (("cpu", 1500000), ("io", 250000))},
        JOB + "memory.current": "123\n",
        JOB + "cpu.stat": "usage_usec 5\nthrottled_usec 2500000\n",
    }
    read = MachineReader(grow(tmp_path, V2 | files)).read()
    assert read["memory_available_bytes"] == 60 * 1024
    assert read["memory_cached_bytes"] == 7 * 1024
    assert read["swap_used_bytes"] == 6 * 1024
    assert read["cgroup_memory_bytes"] == 123
    assert read["cgroup_throttled_s"] == 2.5
    assert (read["psi_cpu_s"], read["psi_io_s"], read["psi_memory_s"]) == (1.5, 0.25, None)
    assert read["machine_cpu_s"] == pytest.approx(1.6)
    assert read["shm_used_bytes"] is None


def test_throttling_of_version_1(tmp_path: Path) -> None:
    grow(tmp_path, {"cpu.stat": "nr_periods 3\nthrottled_time 1500000000\n"})
    assert cgroups.throttled_s(tmp_path) == 1.5
    assert cgroups.throttled_s(tmp_path / "nowhere") is None
