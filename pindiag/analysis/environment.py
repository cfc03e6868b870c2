"""Where it was measured: what a reader of the report wants to know of software and machine."""

from __future__ import annotations

from collections.abc import Iterable

from pindiag.analysis.evidence import RunEvidence
from pindiag.analysis.machine_facts import gpu_of
from pindiag.model import Fact, LaunchStarted, Scalar

_OF_RUN = ("swap_bytes", "shm_bytes", "open_files_limit", "dataset_filesystem", "dataset_device")


def environment(run: RunEvidence, facts: Iterable[Fact]) -> dict[str, Scalar]:
    """Everything that `Report.environment` holds; a GPU's and a quota's part only where there is one."""
    machine, found = run.journal.machine, run.found
    known = {(fact.name, fact.trial): fact.value for fact in facts}
    started = next((record for launch in run.journal.launches for record in launch.all(LaunchStarted)), None)
    gpu = gpu_of(run) or (machine.gpus[0] if machine is not None and machine.gpus else {})
    device = None if found is None else found.device_name
    quota = getattr(machine, "cpu_quota", None)
    throttled = known.get(("throttled_share", run.journal.baseline_id))
    return {
        "machine": getattr(machine, "fingerprint", None),
        "platform": getattr(machine, "platform", None),
        "kernel": getattr(machine, "kernel", None),
        "usable_cpus": getattr(machine, "usable_cpus", run.spec.usable_cpus),
        "usable_cpus_reason": getattr(machine, "usable_cpus_reason", None),
        **({} if quota is None else {"cpu_quota": quota, "throttled_share": throttled}),
        "logical_cpus": getattr(machine, "logical_cpus", None),
        "memory_bytes": getattr(machine, "memory_bytes", None),
        **{name: known.get((name, None)) for name in _OF_RUN},
        "gpu": gpu.get("name") or device,
        "gpu_driver": gpu.get("driver"),
        **(_of_gpu(known, run.journal.baseline_id) if run.has_accelerator else {}),
        "python": getattr(started, "python_version", None),
        "torch": getattr(started, "torch_version", None),
        "cuda": getattr(started, "cuda_version", None),
        "start_method": getattr(found, "start_method", None),
        "pindiag": run.spec.pindiag_version,
        "target": run.spec.target if run.spec.module else run.spec.target.rpartition("/")[2],
    }


def _of_gpu(known: dict[tuple[str, str | None], Scalar], baseline: str | None) -> dict[str, Scalar]:
    """The GPU's link, clocks and place while the script as written ran."""
    generation, lanes = known.get(("pcie_gen", baseline)), known.get(("pcie_width", baseline))
    most, all_lanes = known.get(("pcie_gen_max", None)), known.get(("pcie_width_max", None))
    link = None if generation is None or lanes is None else f"generation {generation}, {lanes} lanes"
    if link is not None and most is not None and (most, all_lanes) != (generation, lanes):
        link += f" (at most generation {most}, {all_lanes} lanes)"
    node, local, cpus = (known.get((name, None)) for name in ("gpu_numa_node", "gpu_local_cpus", "affinity_cpus"))
    place = None if node is None or local is None else f"node {node}, as {local} of the {cpus} CPUs that it may use"
    return {
        "pcie_link": link,
        "gpu_clocks_held_down_by": known.get(("nvml_clock_reasons", baseline)),
        "gpu_numa_node": place,
    }


REASONS = {
    "throttled_share": "throttled_share",
    "pcie_link": "pcie_gen",
    "gpu_clocks_held_down_by": "nvml_clock_reasons",
    **dict.fromkeys(("gpu_numa_node", *_OF_RUN)),
}
"""Keys of the environment whose null has the reason of a fact, by the fact's name where it is another."""


def reasons(run: RunEvidence, facts: Iterable[Fact]) -> dict[str, str]:
    """Why keys of the environment are null, where a fact says so; by JSON path."""
    told = {fact.name: fact.reason for fact in facts if fact.trial in (None, run.journal.baseline_id) and fact.reason}
    found = {key: told.get(fact or key) for key, fact in REASONS.items()}
    return {f"environment.{key}": reason for key, reason in found.items() if reason is not None}
