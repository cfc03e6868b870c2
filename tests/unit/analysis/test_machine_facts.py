"""Facts of the machine, of storage and of what was sampled from outside, over launches that never ran."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from pindiag.analysis import analyse
from pindiag.model import LaunchStarted, Sample, StorageSeen, Unmeasured
from pindiag.plan.schedule import next_order

BASELINE = "nw4-pin0"
GPUS = [
    {"name": "H200", "ordinal": None, "numa_node": 0, "local_cpus": 2, "pcie_gen_max": 4, "pcie_width_max": 8},
    {
        "name": "H200",
        "ordinal": 0,
        "numa_node": 1,
        "local_cpus": 6,
        "pcie_gen_max": 5,
        "pcie_width_max": 16,
        "sm_clock_max_mhz": 2000,
    },
]


@pytest.fixture
def found(script, spec, loader_arguments):
    """Facts and gaps of a run by name and trial; `change` may rewrite a record."""

    def run(machine=None, change=lambda record: [record], accelerator=None):
        fake = script(detailed=True, accelerator=accelerator, baseline=loader_arguments())
        if machine is not None:
            fake.machine(**machine)
        fake.play(partial(next_order, spec()))
        records = [new for record in fake.records for new in change(record)]
        analysis = analyse(spec(), records, fake.batches, {}, {})
        facts = {(fact.name, fact.trial): fact for fact in analysis.facts}
        return facts, {gap.key: gap.reason for gap in analysis.not_measured}

    return run


def with_files(fetched, stored):
    """Rewrites samples: bytes a second that each process was given by read calls, and from storage."""
    first = {}

    def change(record):
        if not isinstance(record, Sample):
            return [record]
        began = first.setdefault(record.launch, record.t_ns)
        passed = (record.t_ns - began) / 1e9
        processes = [
            msgspec.structs.replace(one, asked_bytes=round(fetched * passed), read_bytes=round(stored * passed))
            for one in record.processes
        ]
        return [msgspec.structs.replace(record, processes=processes)]

    return change


def after_start(*made):
    """Adds records to each launch."""

    def change(record):
        more = [make(launch=record.launch, t_ns=record.t_ns) for make in made]
        return [record, *more] if isinstance(record, LaunchStarted) else [record]

    return change


def test_the_machine(found):
    facts, _ = found(
        {"affinity": [0, 1, 2], "numa_cpus": {"0": [0, 1], "1": [2], "2": [3]}, "cpu_quota": 2.5, "swap_bytes": 0}
    )
    said = {name: facts[name, None].value for name in ("affinity_cpus", "numa_nodes", "cpu_numa_nodes", "cpu_quota")}
    assert said == {"affinity_cpus": 3, "numa_nodes": 3, "cpu_numa_nodes": "0, 1", "cpu_quota": 2.5}
    assert (facts["open_files_limit", None].value, facts["swap_bytes", None].value) == (1024, 0)
    assert facts["gpu_numa_node", None].reason == "no accelerator"


def test_what_the_machine_could_not_tell_is_null_with_that_reason(found):
    missing = {"swap_bytes": "the platform does not tell", "numa_cpus": "no nodes here", "affinity": "no masks here"}
    facts, _ = found({"missing": missing})
    assert facts["swap_bytes", None].value is None
    assert facts["swap_bytes", None].reason == "the platform does not tell"
    assert facts["numa_nodes", None].reason == "no nodes here"
    assert facts["affinity_cpus", None].reason == "no masks here"
    assert facts["cpu_quota", None].reason == "no control group of this process has a CPU quota"


def test_a_run_whose_machine_was_not_read(found):
    facts, _ = found()
    assert facts["memory_bytes", None].reason == "the machine was not read"
    assert facts["cpu_numa_nodes", None].reason == "the machine was not read"
    assert facts["psi_memory_share", BASELINE].reason == "not offered by this platform"


def test_the_gpu_that_cuda_counts_first(found):
    facts, _ = found({"gpus": GPUS}, accelerator="cuda")
    names = ("gpu_numa_node", "gpu_local_cpus", "pcie_gen_max", "pcie_width_max")
    assert [facts[name, None].value for name in names] == [1, 6, 5, 16]


@pytest.mark.parametrize(
    ("machine", "more", "reason"),
    [
        ({"missing": {"gpus": "NVML does not work: no driver"}}, [], "NVML does not work: no driver"),
        ({}, [], "NVML told nothing of a GPU when the run began"),
        (
            {"gpus": GPUS},
            [partial(Unmeasured, key="nvml", reason="NVML does not know the device cuda:7")],
            "NVML does not know the device cuda:7",
        ),
        ({"gpus": GPUS}, [], "NVML does not tell it for this GPU"),
    ],
)
def test_without_nvml_its_facts_say_why(found, machine, more, reason):
    facts, gaps = found(machine, after_start(*more), accelerator="cuda")
    assert facts["nvml_slowed_share", BASELINE].reason == reason
    assert facts["pcie_rx_bytes_per_s", BASELINE].reason == reason
    assert gaps["trials[0].sampler.gpu_clock_reasons"] == gaps["trials[0].sampler.pcie_gen"] == reason


def test_clocks_and_the_link(found):
    def change(record):
        levels = {"gpu_sm_clock_mhz": 1500, "gpu_throttle_reasons": 4, "pcie_gen": 5, "gpu_memory_utilization": 0.25}
        return [msgspec.structs.replace(record, **levels) if isinstance(record, Sample) else record]

    facts, _ = found({"gpus": GPUS}, change, accelerator="cuda")
    assert facts["nvml_sm_clock_mhz", BASELINE].value == 1500
    assert facts["nvml_sm_clock_share", BASELINE].value == pytest.approx(0.75)
    assert facts["nvml_clock_reasons", BASELINE].value == "the power cap in 100 % of the samples"
    assert (facts["nvml_slowed_share", BASELINE].value, facts["nvml_held_back_share", BASELINE].value) == (1, 0)
    assert facts["nvml_memory_utilization", BASELINE].value == 0.25
    assert facts["pcie_gen", BASELINE].value == 5


def test_a_container_without_psi_and_process_counters(found):
    hidden = {"psi_memory": "/proc/pressure/memory does not exist", "read_bytes": "/proc/self/io may not be read"}
    facts, gaps = found({"not_sampled": hidden})
    assert facts["psi_memory_share", BASELINE].reason == hidden["psi_memory"]
    assert facts["fetched_bytes_per_s", BASELINE].reason == hidden["read_bytes"]
    assert facts["page_cache_share", BASELINE].reason == hidden["read_bytes"]
    assert gaps["trials[0].sampler.psi_memory_share"] == hidden["psi_memory"]
    assert facts["psi_cpu_share", BASELINE].value is not None


def test_throttled_time(found):
    def change(record):
        return [
            msgspec.structs.replace(record, cgroup_throttled_s=0.3 * record.t_ns / 1e9)
            if isinstance(record, Sample)
            else record
        ]

    facts, _ = found({}, change)
    assert facts["throttled_share", BASELINE].value == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("fetched", "stored", "share", "reason"),
    [
        (10e6, 2e6, 0.8, None),
        (10e6, 0, 1.0, None),
        (1e6, 2e6, None, "more came from storage than read calls gave"),
        (1e3, 0, None, "read calls gave less than 1 MB/s"),
    ],
)
def test_what_part_of_the_bytes_the_page_cache_held(found, fetched, stored, share, reason):
    facts, _ = found({}, with_files(fetched, stored))
    fact = facts["page_cache_share", BASELINE]
    assert fact.value == (None if share is None else pytest.approx(share))
    assert (fact.reason or "").startswith(reason or "")
    assert facts["fetched_bytes_per_s", BASELINE].value == pytest.approx(4 * fetched, rel=1e-3)
    assert facts["storage_bytes_per_s", "nw0-pin0"].value == pytest.approx(stored, rel=1e-3)


def test_where_the_files_lie(found):
    mounts = [
        partial(StorageSeen, filesystem="ext4", device="/dev/sda1", rotational=False, how="open"),
        partial(StorageSeen, filesystem="nfs4", device=None, rotational=None, how="mapped"),
    ]
    facts, _ = found({}, after_start(*mounts))
    filesystem = facts["dataset_filesystem", None]
    assert (filesystem.value, filesystem.source) == ("ext4, nfs4", "files mapped, open in those who make batches")
    assert facts["dataset_device", None].value == "/dev/sda1"
    assert facts["dataset_on_turning_disk", None].value is False


def test_files_on_a_network(found):
    facts, _ = found({}, after_start(partial(StorageSeen, filesystem="nfs4", device=None, rotational=None, how="open")))
    assert facts["dataset_device", None].reason == "they lie on no block device of this machine"
    assert facts["dataset_on_turning_disk", None].reason == "they lie on no block device of this machine"


def test_files_that_were_not_seen(found):
    facts, _ = found({"not_sampled": {"storage": "there is no /proc on this platform"}})
    assert facts["dataset_filesystem", None].reason == "there is no /proc on this platform"
    facts, _ = found({})
    assert facts["dataset_device", None].reason.startswith("no file that those who make batches had open")


@pytest.mark.parametrize(
    ("kernel", "capped"), [("5.15.167.4-microsoft-standard-WSL2", "WSL 2"), ("6.8.0-generic", None)]
)
def test_wsl_is_told_by_its_kernel(found, kernel, capped):
    facts, _ = found({"kernel": kernel})
    assert facts["pinned_memory_capped_by", None].value == capped
