"""Facts of the machine and of the GPU as NVML sees it: of the whole run, and while a trial's blocks counted."""

from __future__ import annotations

from collections.abc import Iterator

from pindiag.analysis.evidence import RunEvidence, TrialEvidence
from pindiag.analysis.fact import fact
from pindiag.model import Fact, Machine, SamplerFigures, Scalar, StorageSeen, Unmeasured

NO_SAMPLES = "fewer than two samples fell into the counted parts"
NO_MACHINE = "the machine was not read"
NO_GPU_RECORD = "NVML told nothing of a GPU when the run began"
NOT_TOLD = "NVML does not tell it for this GPU"
NOT_OFFERED = "not offered by this platform"
NO_WORKER = "no worker that this user may look into lived through a counted part"
NO_FILES = "no file that those who make batches had open for reading or mapped was seen"
LEAST_FETCHED_BYTES_PER_S = 1e6
"""Below, what read calls give a worker is little more than the indices that it is sent."""

Row = tuple[str, Scalar, str | None, str]


def of_machine(run: RunEvidence) -> Iterator[Fact]:
    """What does not change while a run lasts."""
    machine = run.journal.machine
    usable = run.spec.usable_cpus if machine is None else machine.usable_cpus
    yield fact("usable_cpus", usable, "CPUs", "affinity and cgroup quota", NO_MACHINE)
    for name, unit, absent in (
        ("platform", None, NOT_OFFERED),
        ("logical_cpus", "CPUs", NOT_OFFERED),
        ("memory_bytes", "B", NOT_OFFERED),
        ("memory_available_bytes", "B", NOT_OFFERED),
        ("shm_bytes", "B", "there is none"),
        ("shm_free_bytes", "B", "there is none"),
        ("cgroup_memory_limit_bytes", "B", "there is none"),
        ("cpu_quota", "CPUs", "no control group of this process has a CPU quota"),
        ("open_files_limit", "files", "there is none"),
        ("locked_memory_limit_bytes", "B", "there is none"),
        ("swap_bytes", "B", NOT_OFFERED),
    ):
        reason = NO_MACHINE if machine is None else machine.missing.get(name, absent)
        unknown = machine is None or name in machine.missing
        yield fact(name, None if unknown else getattr(machine, name), unit, "machine", reason)
    wsl = "WSL 2" if machine is not None and "microsoft" in machine.kernel.lower() else None
    reason = NO_MACHINE if machine is None else "the kernel is not that of WSL 2"
    yield fact("pinned_memory_capped_by", wsl, None, "the kernel's name", reason)
    yield from _of_nodes(run, machine)
    yield from _of_storage(run)


def _of_nodes(run: RunEvidence, machine: Machine | None) -> Iterator[Fact]:
    """Affinity and NUMA, and the GPU's place in it."""
    gpu = gpu_of(run)
    affinity = None if machine is None else machine.affinity
    missing = {} if machine is None else machine.missing
    nodes = None if machine is None else machine.numa_cpus
    used = [node for node, cpus in (nodes or {}).items() if affinity is None or set(cpus) & set(affinity)]
    of_cpus: tuple[Row, ...] = (
        ("affinity_cpus", None if affinity is None else len(affinity), "CPUs", missing.get("affinity", NO_MACHINE)),
        ("numa_nodes", None if nodes is None else len(nodes), "nodes", missing.get("numa_cpus", NO_MACHINE)),
        ("cpu_numa_nodes", ", ".join(used) or None, None, missing.get("numa_cpus", NO_MACHINE)),
    )
    for name, value, unit, reason in of_cpus:
        yield fact(name, value, unit, "machine", reason)
    no_gpu = no_nvml(run) if gpu is None else NOT_TOLD
    no_node = no_gpu if gpu is None else "the firmware does not tell which NUMA node the GPU hangs on"
    own: dict[str, Scalar] = gpu or {}
    of_gpu: tuple[Row, ...] = (
        ("gpu_numa_node", own.get("numa_node"), None, no_node),
        ("gpu_local_cpus", own.get("local_cpus"), "CPUs", no_node),
        ("pcie_gen_max", own.get("pcie_gen_max"), None, no_gpu),
        ("pcie_width_max", own.get("pcie_width_max"), "lanes", no_gpu),
        ("nvml_sm_clock_max_mhz", own.get("sm_clock_max_mhz"), "MHz", no_gpu),
    )
    for name, value, unit, reason in of_gpu:
        yield fact(name, value, unit, "NVML and sysfs", reason)


def gpu_of(run: RunEvidence) -> dict[str, Scalar] | None:
    """The GPU that the script trains on, as NVML described it when the run began."""
    machine = run.journal.machine
    if machine is None or not machine.gpus or not run.has_accelerator:
        return None
    last = ((run.found and run.found.device) or "").rpartition(":")[2]
    ordinal = int(last) if last.isdigit() else 0
    return next((gpu for gpu in machine.gpus if gpu.get("ordinal") == ordinal), machine.gpus[0])


def no_nvml(run: RunEvidence) -> str:
    """Why NVML told nothing."""
    if not run.has_accelerator:
        return "no accelerator"
    told = (record for launch in run.journal.launches for record in launch.all(Unmeasured))
    unknown = next((record.reason for record in told if record.key == "nvml"), None)
    machine = run.journal.machine
    missing = {} if machine is None else machine.missing
    return unknown or missing.get("gpus") or (NO_GPU_RECORD if machine is None or not machine.gpus else NOT_TOLD)


def _of_storage(run: RunEvidence) -> Iterator[Fact]:
    seen = [record for launch in run.journal.launches for record in launch.all(StorageSeen)]
    machine = run.journal.machine
    reason = NO_FILES if machine is None else machine.not_sampled.get("storage", NO_FILES)
    ways = ", ".join(sorted({record.how for record in seen}))
    source = f"files {ways} in those who make batches" if seen else "processes of the target"
    filesystems = ", ".join(sorted({record.filesystem for record in seen})) or None
    devices = ", ".join(sorted({record.device for record in seen if record.device is not None})) or None
    turning = {record.rotational for record in seen if record.rotational is not None}
    yield fact("dataset_filesystem", filesystems, None, source, reason)
    on_none = "they lie on no block device of this machine" if seen else reason
    yield fact("dataset_device", devices, None, source, on_none)
    untold = "the kernel does not tell" if devices else on_none
    yield fact("dataset_on_turning_disk", any(turning) if turning else None, None, source, untold)


def of_sampler(trial: TrialEvidence) -> Iterator[Fact]:
    """What was sampled from outside while the trial's blocks counted."""
    sampler = trial.sampler
    machine = trial.run.journal.machine
    usable = trial.run.spec.usable_cpus if machine is None else machine.usable_cpus
    no_workers = trial.without_workers or NO_WORKER
    rows: list[Row] = [
        ("worker_cpu_share", _scaled(sampler, "worker_cpu_percent", 0.01), "1", no_workers),
        ("main_cpu_share", _scaled(sampler, "main_cpu_percent", 0.01), "1", NOT_OFFERED),
        ("target_cpu_share", _scaled(sampler, "cpu_percent", 0.01 / max(usable, 1)), "1", NOT_OFFERED),
        ("worker_rss_bytes", getattr(sampler, "worker_rss_bytes", None), "B", no_workers),
        ("worker_threads", getattr(sampler, "worker_threads", None), "threads", no_workers),
        (
            "worker_allowed_cpus",
            getattr(sampler, "worker_allowed_cpus", None),
            "CPUs",
            trial.without_workers or not_sampled(trial.run, "affinity"),
        ),
        (
            "main_allowed_cpus",
            getattr(sampler, "main_allowed_cpus", None),
            "CPUs",
            not_sampled(trial.run, "affinity"),
        ),
        ("shm_used_max_bytes", getattr(sampler, "shm_used_bytes", None), "B", "there is no /dev/shm"),
        ("swap_used_max_bytes", getattr(sampler, "swap_used_bytes", None), "B", NOT_OFFERED),
        _page_cache(trial),
        *_offered(trial),
        *_of_gpu(trial),
    ]
    for name, value, unit, reason in rows:
        absent = NO_SAMPLES if sampler is None else reason
        yield fact(name, value, unit, f"sampler, {trial.source}", absent, trial=trial.id)


def not_sampled(run: RunEvidence, key: str) -> str:
    """Why no sample here holds something."""
    machine = run.journal.machine
    return NOT_OFFERED if machine is None else machine.not_sampled.get(key, NOT_OFFERED)


SAMPLED = {
    "run_delay_share": ("run_delay", "1"),
    "involuntary_switches_per_s": ("switches", "1/s"),
    "major_faults_per_s": ("faults", "1/s"),
    "read_bytes_per_s": ("read_bytes", "B/s"),
    "fetched_bytes_per_s": ("read_bytes", "B/s"),
    "storage_bytes_per_s": ("read_bytes", "B/s"),
    "psi_cpu_share": ("psi_cpu", "1"),
    "psi_io_share": ("psi_io", "1"),
    "psi_memory_share": ("psi_memory", "1"),
    "throttled_share": ("throttled", "1"),
}
"""Fields of `SamplerFigures`: what of `Machine.not_sampled` tells why they are missing, and their unit."""


def _offered(trial: TrialEvidence) -> Iterator[Row]:
    for name, (key, unit) in SAMPLED.items():
        yield name, getattr(trial.sampler, name, None), unit, not_sampled(trial.run, key)


def _page_cache(trial: TrialEvidence) -> Row:
    """What part of the bytes that read calls gave did not come from storage."""
    fetched = getattr(trial.sampler, "fetched_bytes_per_s", None)
    stored = getattr(trial.sampler, "storage_bytes_per_s", None)
    name, unit = "page_cache_share", "1"
    if fetched is None or stored is None:
        return name, None, unit, not_sampled(trial.run, "read_bytes")
    if stored > fetched:
        return name, None, unit, "more came from storage than read calls gave: files are mapped, or read ahead"
    if fetched < LEAST_FETCHED_BYTES_PER_S:
        return name, None, unit, "read calls gave less than 1 MB/s: data are in memory, made, or in mapped files"
    return name, 1 - stored / fetched, unit, ""


def _of_gpu(trial: TrialEvidence) -> Iterator[Row]:
    reason = no_nvml(trial.run)
    most = (gpu_of(trial.run) or {}).get("sm_clock_max_mhz")
    clock = getattr(trial.sampler, "gpu_sm_clock_mhz", None)
    share = clock / most if clock is not None and isinstance(most, int) and most else None
    yield "nvml_sm_clock_share", share, "1", reason
    for name, field, unit in (
        ("nvml_utilization", "gpu_utilization", "1"),
        ("nvml_memory_utilization", "gpu_memory_utilization", "1"),
        ("nvml_sm_clock_mhz", "gpu_sm_clock_mhz", "MHz"),
        ("nvml_memory_clock_mhz", "gpu_memory_clock_mhz", "MHz"),
        ("nvml_power_w", "gpu_power_w", "W"),
        ("nvml_slowed_share", "gpu_slowed_share", "1"),
        ("nvml_held_back_share", "gpu_held_back_share", "1"),
        ("nvml_clock_reasons", "gpu_clock_reasons", None),
        ("pcie_rx_bytes_per_s", "pcie_rx_bytes_per_s", "B/s"),
        ("pcie_gen", "pcie_gen", None),
        ("pcie_width", "pcie_width", "lanes"),
    ):
        yield name, getattr(trial.sampler, field, None), unit, reason


def _scaled(sampler: SamplerFigures | None, field: str, factor: float) -> float | None:
    value = getattr(sampler, field, None)
    return None if value is None else float(value) * factor
