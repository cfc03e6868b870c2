"""PD129 cgroup_throttled."""

from __future__ import annotations

from pindiag.model import Severity
from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Statement, rule


@rule(
    "PD129",
    "cgroup_throttled",
    title="A CPU quota held the script's processes back",
    limit="The CPU quota",
    options={"throttled_share": 0.1, "grave_share": 0.5},
    of_fact=True,
)
def cgroup_throttled(facts: Facts, options: Options) -> Statement:
    """A container's CPU quota stops the script's processes for a part of each period.

    What it means:
        A quota of 4 CPUs on a machine of 64 does not hide the other 60: it lets the processes use 0.4 s of CPU time
        in each 0.1 s of time, and then stops all of them until the next period. Programs that count the machine's CPUs
        start that many workers and threads, use up the quota at the beginning of each period, and stand still for the
        rest, the training process among them.

    How it is decided:
        By its fact: the control group's `throttled_usec` (version 1: `throttled_time`) grew by at least
        `throttled_share` of a second a second while the script as written trained (0.1: the share from which a block
        counts as disturbed; a short burst at an epoch's begin stays below). The kernel adds up what each CPU was kept
        from, so that it may be more than 1. `medium`, and `high` from `grave_share` on (0.5: the processes were
        stopped half of the time). It claims no gain.

    Example:
        before: a pod with `limits: cpu: 4`, `num_workers=16` and 16 OpenMP threads: throttled 0.6 s a second.
        after: `num_workers=3` and `torch.set_num_threads(1)`, or a limit of 16.

    Fix:
        Raise the limit, or start no more workers and threads than it allows: usable CPUs minus one is where to start.

    When to ignore:
        When other programs in the same control group used the quota up only while it was measured.

    References:
        Linux, Documentation/admin-guide/cgroup-v2.rst (cpu.max, cpu.stat); CFS bandwidth control.
    """
    share = facts.number("throttled_share")
    quota = facts.get("cpu_quota")
    evidence = facts.evidence("throttled_share", "cpu_quota", "target_cpu_share", "usable_cpus", "run_delay_share")
    limit = "the CPU quota" if quota is None else f"the quota of {quota:g} CPUs"
    said = f"{limit[:1].upper()}{limit[1:]} held the control group back for {share:.2g} s a second."
    if share < options["throttled_share"]:
        return Statement(status="ruled_out", explanation=said, evidence=evidence)
    severity: Severity = "high" if share >= options["grave_share"] else "medium"
    workers = max(int(facts.get("usable_cpus") or 1) - 1, 1)
    too_many = facts.configuration.num_workers > workers
    return Statement(
        status="confirmed",
        severity=severity,
        explanation=said,
        evidence=evidence,
        remedy={"num_workers": workers} if too_many else {},
        remedy_summary=(
            f"Set `num_workers={workers}`, or raise the quota."
            if too_many
            else "Raise the quota, or give each process fewer threads of its own."
        ),
    )
