from __future__ import annotations

from functools import partial

import pytest

from pindiag.analysis.environment import environment, reasons
from pindiag.analysis.evidence import RunEvidence
from pindiag.analysis.fact import fact
from pindiag.plan.schedule import next_order

BASELINE = "nw4-pin0"


@pytest.fixture
def run(script, spec, loader_arguments):
    def made(accelerator=None, **machine):
        fake = script(baseline=loader_arguments(), accelerator=accelerator)
        fake.machine(**machine)
        fake.play(partial(next_order, spec()), most=1000)
        return RunEvidence(spec(), fake.records, [], {})

    return made


def of_run(**values):
    return [fact(name, value, None, "", "why not") for name, value in values.items()]


def of_baseline(**values):
    return [fact(name, value, None, "", "why not", trial=BASELINE) for name, value in values.items()]


def test_without_gpu_and_quota_nothing_is_said_of_them(run):
    found = environment(run(), of_run(dataset_filesystem="ext4", shm_bytes=8))
    assert (found["dataset_filesystem"], found["shm_bytes"], found["gpu"]) == ("ext4", 8, None)
    assert not {"cpu_quota", "throttled_share", "pcie_link", "gpu_numa_node"} & found.keys()


def test_a_quota_and_what_it_held_back(run):
    found = environment(run(cpu_quota=2.0), of_baseline(throttled_share=0.1))
    assert (found["cpu_quota"], found["throttled_share"]) == (2.0, 0.1)


@pytest.mark.parametrize(
    ("most", "words"),
    [((5, 16), "generation 4, 16 lanes (at most generation 5, 16 lanes)"), ((4, 16), "generation 4, 16 lanes")],
)
def test_the_gpus_link_and_place(run, most, words):
    told = [
        *of_baseline(pcie_gen=4, pcie_width=16, nvml_clock_reasons="nothing"),
        *of_run(pcie_gen_max=most[0], pcie_width_max=most[1], gpu_numa_node=1, gpu_local_cpus=6, affinity_cpus=8),
    ]
    gpus = [{"name": "A", "ordinal": 1}, {"name": "B", "ordinal": 0, "driver": "1"}]
    found = environment(run("cuda", gpus=gpus), told)
    assert found["pcie_link"] == words
    assert found["gpu_clocks_held_down_by"] == "nothing"
    assert found["gpu_numa_node"] == "node 1, as 6 of the 8 CPUs that it may use"
    assert (found["gpu"], found["gpu_driver"]) == ("B", "1")


def test_what_is_missing_has_the_reason_of_its_fact(run):
    told = [*of_baseline(pcie_gen=None, nvml_clock_reasons=None), *of_run(gpu_numa_node=None, shm_bytes=1)]
    found = run("cuda")
    assert environment(found, told)["pcie_link"] is None
    assert reasons(found, told) == {
        f"environment.{key}": "why not" for key in ("pcie_link", "gpu_clocks_held_down_by", "gpu_numa_node")
    }
