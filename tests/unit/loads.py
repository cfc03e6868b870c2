"""What ran beside a block, quiet but for what a test says."""

from typing import Any

from pindiag.model import BlockLoad


def load(block: int = 1, *, launch: int = 1, t_ns: int = 0, **changes: Any) -> BlockLoad:
    quiet: dict[str, Any] = {
        "seconds": 1.5,
        "trial": "nw4-pin0",
        "cpus": 8,
        "target_cpus": 3.0,
        "foreign_cpus": 0.1,
        "stolen_cpus": 0.0,
        "queued_share": 0.002,
        "throttled_share": 0.0,
        "quota_cpus": None,
        "gpu_slowed_share": 0.0,
        "gpu_sm_clock_mhz": 1980.0,
    }
    return BlockLoad(launch=launch, t_ns=t_ns, block=block, **(quiet | changes))


CROWDED: dict[str, Any] = {"foreign_cpus": 4.0, "queued_share": 0.3}
"""Changes that make a block disturbed by others."""
