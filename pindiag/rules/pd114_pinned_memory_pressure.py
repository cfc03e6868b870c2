"""PD114 pinned_memory_pressure."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Ruling, require, rule


@rule(
    "PD114",
    "pinned_memory_pressure",
    title="Pinned buffers take memory that the machine is short of",
    limit="Memory",
    options={"memory_share": 0.25, "left_share": 0.05, "psi_memory_share": 0.05, "wsl_share": 0.5},
)
def pinned_memory_pressure(facts: Facts, options: Options) -> Ruling:
    """Pinned buffers cannot be swapped out, and what is left is too little for everything else.

    What it means:
        Each batch in flight that has been pinned holds memory that the system may not move. When the rest runs
        short, it drops caches and swaps, and the whole machine becomes slow.

    How it is decided:
        The loader pins, and the pinned bytes take at least `memory_share` of what this process may use (0.25: the
        rest must hold the dataset, the workers and the page cache), or memory ran short while it trained: less than
        `left_share` left (0.05), or tasks stalled on memory `psi_memory_share` of the time (0.05). What counts is the
        larger of what was seen and what is reckoned: all batches in flight, `num_workers` × `prefetch_factor`, and
        one in use, each rounded up to a power of two as torch's allocator does. While training pauses, to save a
        checkpoint say, the pin thread goes on until it has pinned them all, and what was pinned once is kept.
        Under WSL 2 the driver caps what may be pinned: the share is then one of `wsl_share` of the memory (0.5: Windows
        itself lets no more of it be pinned). Suspected at most: other memory may be what is short.

    Example:
        before: `batch_size=352, num_workers=8, pin_memory=True` with images of 3 MiB: 17 batches of 1.03 GiB hold 2 GiB
        each when pinned, 34 GiB of a machine's 128.
        after: `batch_size=340`: just below 1 GiB, so that they hold 17 GiB; or `num_workers=4`.

    Fix:
        Fewer batches in flight (`num_workers` × `prefetch_factor`), batches just below a power of two, smaller ones, or
        `pin_memory=False`.

    When to ignore:
        When the memory limit is higher where the script trains later, or nothing else needs the memory.

    References:
        pytorch/pytorch#95823, LMCache/LMCache#1147, microsoft/WSL#8447.
    """
    require(facts.accelerator, "There is no accelerator, so nothing is pinned.")
    require(facts.configuration.pin_memory, "As written the loader does not pin.")
    total = facts.get("cgroup_memory_limit_bytes") or facts.number("memory_bytes")
    require(total > 0, "The size of the memory is not known.")
    seen, reckoned = facts.get("pinned_reserved_bytes"), facts.get("pinned_reckoned_bytes")
    require(seen is not None or reckoned is not None, "What is pinned was neither seen nor reckoned.")
    pinned = max(seen or 0.0, reckoned or 0.0)
    left = facts.get("memory_available_min_bytes")
    stalled = facts.get("psi_memory_share") or 0.0
    capped = facts.text("pinned_memory_capped_by")
    pinnable = total * options["wsl_share"] if capped else total
    short = (left is not None and left < options["left_share"] * total) or stalled >= options["psi_memory_share"]
    return Ruling(
        points=pinned >= options["memory_share"] * pinnable or short,
        explanation=(
            f"Pinned buffers hold up to {figures.byte_size(pinned)} of {figures.byte_size(total)}"
            f"{'' if left is None else f'; at the least {figures.byte_size(left)} were left'}."
            f"{f' {capped} caps what may be pinned, whatever is free.' if capped else ''}"
        ),
        evidence=facts.evidence(
            "pinned_reserved_bytes",
            "pinned_reckoned_bytes",
            "memory_bytes",
            "cgroup_memory_limit_bytes",
            "pinned_memory_capped_by",
            "memory_available_min_bytes",
            "swap_growth_bytes",
            "psi_memory_share",
        ),
        experiments=facts.alone(pin_memory=False),
        settled_by="a run without pinning, or with fewer batches in flight,",
        suspected_at_most=True,
    )
