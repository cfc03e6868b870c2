"""What of a machine limits training, said in words with what to do. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pindiag import figures
from pindiag.doctor_model import Doctor, Limit
from pindiag.model import Scalar

SMALL_SHM_BYTES = 1 << 30
"""Four workers with two batches of 77 MB each hold 0.6 GB; containers get 64 MB unless told otherwise."""
EXAMPLE_BATCH_BYTES = 8_000_000
FEW_OPEN_FILES = 1024
"""What most Linux systems give; every tensor that waits in the queue holds one descriptor of the main process."""
EXAMPLE_TENSORS = 100
LANE_BYTES_PER_S = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
"""One PCIe lane in one direction by generation, after its line code."""
LEAST_LINK_SHARE = 0.6
"""Large pinned copies reach 0.8 to 0.9 of a link (55 of 63 GB/s on an H200)."""


def limits(found: Doctor) -> list[Limit]:
    """All limits of a machine that can be told from what was found, in the order of the text."""
    return [
        *_cpus(found),
        *_memory(found),
        *_shm(found),
        *_open_files(found),
        *_unused_gpu(found),
        *_link(found),
        *_copies(found),
    ]


def _cpus(found: Doctor) -> Iterator[Limit]:
    machine = found.machine
    if machine.usable_cpus < machine.logical_cpus:
        by = {"affinity": "its affinity mask", "cgroup quota": "the CPU quota of its control group"}
        yield Limit(
            name="usable_cpus",
            what=f"This process may use {machine.usable_cpus} of {machine.logical_cpus} CPUs, by "
            f"{by.get(machine.usable_cpus_reason, machine.usable_cpus_reason)}; os.cpu_count() and torch's defaults do "
            "not all know it.",
            do=f"Reckon workers from {machine.usable_cpus} CPUs, or raise the limit (docker run --cpus, "
            "Slurm --cpus-per-task).",
        )


def _memory(found: Doctor) -> Iterator[Limit]:
    limit, total = found.machine.cgroup_memory_limit_bytes, found.machine.memory_bytes
    if limit is not None and limit < total:
        yield Limit(
            name="memory",
            what=f"The control group's memory limit is {figures.byte_size(limit)}; the machine has "
            f"{figures.byte_size(total)}. Workers, /dev/shm and pinned memory all count towards it.",
            do="Raise the limit (docker run --memory, Slurm --mem), or hold fewer batches in flight.",
        )


def _shm(found: Doctor) -> Iterator[Limit]:
    size, free = found.machine.shm_bytes, found.machine.shm_free_bytes
    if size is None and found.machine.platform.startswith("Linux"):
        yield Limit(
            name="shm",
            what="There is no /dev/shm: workers cannot hand batches over.",
            do="Mount a tmpfs there, or use num_workers=0.",
        )
    if size is None or free is None:
        return
    if size < SMALL_SHM_BYTES:
        yield Limit(
            name="shm",
            what=f"/dev/shm holds {figures.byte_size(size)}: {_batches(size)}, those of all workers counted together. "
            "A worker that finds it full dies of a bus error.",
            do="Start the container with --shm-size=1g or --ipc=host, or use fewer workers.",
        )
    elif free < size / 2:
        yield Limit(
            name="shm",
            what=f"/dev/shm has {figures.byte_size(free)} of its {figures.byte_size(size)} free: {_batches(free)}.",
            do="See what lies in /dev/shm; dead processes leave torch_* files there.",
        )


def _batches(size_bytes: int) -> str:
    return f"room for {figures.count(size_bytes // EXAMPLE_BATCH_BYTES)} batches of 8 MB"


def _open_files(found: Doctor) -> Iterator[Limit]:
    limit = found.machine.open_files_limit
    by_descriptor = found.torch is None or found.torch.sharing_strategy == "file_descriptor"
    if limit is not None and limit <= FEW_OPEN_FILES and by_descriptor:
        yield Limit(
            name="open_files",
            what=f"A process may open {figures.count(limit)} files, and every tensor that comes from a worker holds "
            f"one while it lives: with {EXAMPLE_TENSORS} tensors a batch that is {limit // EXAMPLE_TENSORS} batches.",
            do="Raise it with ulimit -n 65536, or let a batch have fewer tensors.",
        )


def _unused_gpu(found: Doctor) -> Iterator[Limit]:
    if found.machine.gpus and found.torch is not None and found.torch.accelerator is None:
        yield Limit(
            name="accelerator",
            what=f"torch cannot use the GPU ({found.machine.gpus[0]['name']}): {found.torch.no_accelerator}.",
            do="Install a torch that is built for this driver, or let the process see the GPU.",
        )


def _link(found: Doctor) -> Iterator[Limit]:
    gpu = _loaded_gpu(found)
    if gpu is None:
        return
    now, most = (gpu["pcie_gen"], gpu["pcie_width"]), (gpu["pcie_gen_max"], gpu["pcie_width_max"])
    full, link = link_bytes_per_s(*most), link_bytes_per_s(*now)
    if full is not None and link is not None and link < full:
        yield Limit(
            name="pcie_link",
            what=f"The GPU's PCIe link ran at generation {now[0]} with {now[1]} lanes while copies went over it, of at "
            f"most generation {most[0]} with {most[1]}: {_rate(link)} instead of {_rate(full)}.",
            do="Use a slot with all lanes wired to the CPU, and look for a riser, a BIOS setting or a shared switch.",
        )


def _copies(found: Doctor) -> Iterator[Limit]:
    gpu, best = _loaded_gpu(found), _best_pinned(found)
    link = None if gpu is None else link_bytes_per_s(gpu["pcie_gen"], gpu["pcie_width"])
    if link is not None and best is not None and best < LEAST_LINK_SHARE * link:
        yield Limit(
            name="copies",
            what=f"Pinned copies reached {_rate(best)} of the {_rate(link)} that the PCIe link carries.",
            do="Measure again while nothing else copies, and run on CPUs of the GPU's own NUMA node.",
        )


def _loaded_gpu(found: Doctor) -> dict[str, Scalar] | None:
    """The GPU that copies went to; the link of another one may have been read while it saved power."""
    return next((gpu for gpu in found.machine.gpus if gpu["pcie_under_load"]), None)


def _best_pinned(found: Doctor) -> float | None:
    sizes = [] if found.copies is None else found.copies.sizes
    return max((each.pinned_bytes_per_s.median for each in sizes if each.pinned_bytes_per_s is not None), default=None)


def link_bytes_per_s(generation: Scalar, lanes: Scalar) -> float | None:
    """What a PCIe link carries in one direction; None where its generation is not known here."""
    lane = LANE_BYTES_PER_S.get(generation) if isinstance(generation, int) else None
    return None if lane is None or not isinstance(lanes, int) else lane * lanes


def _rate(bytes_per_s: float) -> str:
    return f"{figures.byte_size(bytes_per_s)}/s"
