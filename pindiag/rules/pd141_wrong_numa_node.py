"""PD141 wrong_numa_node."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules import copies
from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Statement, require, rule


@rule(
    "PD141",
    "wrong_numa_node",
    title="The script may run only on CPUs of another NUMA node than the GPU's",
    limit="The way between NUMA nodes",
    options={"copy_share": 0.05},
    of_fact=True,
)
def wrong_numa_node(facts: Facts, options: Options) -> Statement:
    """The process is bound to CPUs whose memory lies on the far side of the machine from its GPU.

    What it means:
        On a machine with several NUMA nodes each GPU hangs on one of them. Batches that are made on another node lie in
        its memory, and each copy crosses the connection between the nodes, which all CPUs share.

    How it is decided:
        By its fact: the machine has several nodes, and none of the CPUs that the process may run on belongs to the
        GPU's. Where some do, nothing is said: which of them the system uses was not looked at. It claims no gain.
        `medium` where copies take at least `copy_share` of each step (0.05: below, nothing that is done about copies
        could bring 1.05 ×).

    Example:
        before: `taskset -c 0-31 python train.py` with `CUDA_VISIBLE_DEVICES=4`, whose node has CPUs 32-63.
        after: `numactl --cpunodebind=1 --membind=1 python train.py`.

    Fix:
        `numactl --cpunodebind=1 --membind=1 python train.py`, with the GPU's node.

    When to ignore:
        When the CPUs of the GPU's own node are for others.

    References:
        pytorch/pytorch#160420, pytorch/pytorch#197868.
    """
    require(facts.accelerator, "There is no accelerator, so it hangs on no node.")
    nodes = facts.number("numa_nodes")
    require(nodes > 1, "The machine has one NUMA node.")
    node, local = facts.number("gpu_numa_node"), facts.number("gpu_local_cpus")
    usable = facts.get("affinity_cpus")
    of = "" if usable is None else f" of the {figures.count(usable)}"
    evidence = facts.evidence("gpu_numa_node", "gpu_local_cpus", "cpu_numa_nodes", "affinity_cpus", "transfer_share")
    if local > 0:
        said = f"{figures.count(local)}{of} CPUs that the script may use belong to the GPU's node."
        return Statement(status="ruled_out", explanation=said, evidence=evidence)
    return Statement(
        status="confirmed",
        severity=copies.severity(facts, options["copy_share"]),
        explanation=f"The GPU hangs on node {figures.count(node)}; none{of} CPUs that the script may use are there.",
        evidence=evidence,
        remedy_summary=f"Run it on the GPU's node: `numactl --cpunodebind={node:.0f} --membind={node:.0f} python ...`.",
    )
