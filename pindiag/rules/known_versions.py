"""What versions of torch and Python are known to do wrong or to lack. Pure.

Only what was read in a public thread or in the sources of the versions, or seen to happen, stands here, and says so.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from pindiag.doctor_model import KnownFault

Version = tuple[int, ...]
END: Version = (999,)
Concern = Literal["round_threshold", "newly_pinned", None]
"""What makes a fault matter to one run, where a finding is to say so: the allocator's setting, or that the recommended
configuration pins and the script as written does not. None: for `doctor` only, or another rule measures it."""


class Entry(NamedTuple):
    """A fault, and the versions that have it: from the first one to the one before `fixed`."""

    package: str
    first: Version
    fixed: Version
    fault: KnownFault
    concerns: Concern = None


def known_faults(torch_version: str, python_version: str) -> list[KnownFault]:
    """What is known of these versions, gravest first.

    Args:
        torch_version: as `torch.__version__` says it: "2.13.0+cpu".
        python_version: of the interpreter that trains.
    """
    return [entry.fault for entry in entries_of(torch_version, python_version)]


def entries_of(torch_version: str, python_version: str) -> list[Entry]:
    """The entries of these versions, gravest first; arguments as of `known_faults`."""
    versions = {"torch": _version(torch_version), "python": _version(python_version)}
    return [entry for entry in ENTRIES if entry.first <= versions[entry.package] < entry.fixed]


def _version(text: str) -> Version:
    return tuple(int(part) for part in re.findall(r"\d+", text.partition("+")[0])[:3])


def _torch(
    first: Version, fixed: Version, *, versions: str, what: str, do: str, source: str, concerns: Concern = None
) -> Entry:
    return Entry("torch", first, fixed, KnownFault(versions=versions, what=what, do=do, source=source), concerns)


ENTRIES = (
    _torch(
        (2, 13),
        (2, 14, 1),
        versions="torch 2.13 (2.14.0 unchecked, 2.14.1 has the missing check)",
        what="With the host allocator's pinned_max_round_threshold_mb below its pinned_max_cached_size_mb, a request "
        "can be given a smaller cached block, and what is written overflows it.",
        do="Leave pinned_max_round_threshold_mb out of PYTORCH_CUDA_ALLOC_CONF, or use torch 2.14.1.",
        source="https://github.com/pytorch/pytorch/pull/192722; the header CachingHostAllocator.h of 2.13.0 and 2.14.1",
        concerns="round_threshold",
    ),
    _torch(
        (2, 6),
        (2, 15),
        versions="torch 2.6 to 2.14 (seen in 2.6.0, 2.11, 2.13 and 2.14.1)",
        what="The pin thread of a loader with workers can leave the main thread with one intra-op thread: CPU work "
        "between batches was 1.9 to 4.1 times slower.",
        do="Call torch.set_num_threads(torch.get_num_threads()) before the first iter(loader).",
        source="measured by pindiag's authors on an H200 with 16 cores (torch 2.11 and 2.13), the number of threads on "
        "CPUs in the others; torch/utils/data/_utils/pin_memory.py; `pindiag explain intraop_threads_lost`",
    ),
    _torch(
        (2, 6),
        (2, 7),
        versions="torch 2.6",
        what="pin_memory=True without an accelerator does nothing and says nothing; newer versions warn.",
        do="Do not take silence for pinned batches: ask batch.is_pinned().",
        source="torch/utils/data/dataloader.py of 2.6.0 and 2.7.1",
    ),
    _torch(
        (2, 6),
        (2, 7),
        versions="torch 2.6",
        what="torch.cuda.host_memory_stats() is missing, and the profiler cannot record threads that were running "
        "before it: what pinning costs is told in less detail.",
        do="Use torch 2.7 or newer to see the pinned memory's allocations.",
        source="torch/cuda/memory.py and _ExperimentalConfig of 2.6.0 and 2.7.1",
    ),
    _torch(
        (2, 6),
        (2, 10),
        versions="torch 2.6 to 2.9",
        what="Pinning turns the tuples of a batch into lists, so pin_memory=True can break code that asks for a tuple.",
        do="Accept lists too, or use torch 2.10 or newer.",
        source="torch/utils/data/_utils/pin_memory.py of 2.9 and 2.10",
        concerns="newly_pinned",
    ),
    _torch(
        (2, 6),
        (2, 11),
        versions="torch 2.6 to 2.10",
        what="A batch class that is a dict or a sequence is not asked for its own pin_memory(): its items are pinned "
        "one by one and its type can change.",
        do="Let the batch class be no subclass of dict, list or tuple, or use torch 2.11 or newer.",
        source="https://github.com/pytorch/pytorch/issues/32150; torch/utils/data/_utils/pin_memory.py, 2.10 and 2.11",
        concerns="newly_pinned",
    ),
    _torch(
        (2, 9),
        END,
        versions="torch 2.9 and newer",
        what="pin_memory_device is ignored, with a warning.",
        do="Leave it out: batches are pinned for the current accelerator.",
        source="torch/utils/data/dataloader.py of 2.9",
    ),
    _torch(
        (2, 11),
        (2, 12),
        versions="torch 2.11, where it was seen",
        what="After one torch.profiler window a process stays slower: steps of 4.5-4.9 ms took 5.4-6.1 ms.",
        do="Profile in a process of its own, and time another one.",
        source="https://github.com/pytorch/pytorch/issues/144455; measured by pindiag's authors on an H200",
    ),
    Entry(
        "python",
        (3, 14),
        END,
        KnownFault(
            versions="Python 3.14 and newer",
            what="On Linux workers are started by forkserver unless told otherwise: what is not picklable (a lambda as "
            "collate_fn) fails, and workers start more slowly.",
            do='Make dataset and collate_fn picklable, or pass multiprocessing_context="fork".',
            source="https://github.com/pytorch/pytorch/issues/169252, 167387",
        ),
    ),
)
"""Gravest first. Where a fault ends is told by the sources of torch 2.6 to 2.14."""
