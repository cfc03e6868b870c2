"""PD106 pageable_copy."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules import ceilings
from pindiag.rules.inputs import Experiment, Facts
from pindiag.rules.rule import Options, Ruling, at_most, require, rule


@rule(
    "PD106",
    "pageable_copy",
    title="Copies to the GPU come from pageable memory, and the script waits for them",
    limit="The copy from pageable memory",
    options={"transfer_share": 0.05, "fell_to": 0.7},
)
def pageable_copy(facts: Facts, options: Options) -> Ruling:
    """Batches lie in ordinary memory, so each copy to the GPU passes a staging buffer while the script waits.

    What it means:
        The GPU fetches by itself only from memory that the system promises not to move (pinned). From elsewhere
        the driver copies piece by piece through a buffer of its own, slower, and the script waits meanwhile.

    How it is decided:
        The loader does not pin, and at least `transfer_share` of each step goes into the copies (0.05: below,
        free copies would bring less than 1.05 ×). Confirmed when `pin_memory=True`, alone or with
        `non_blocking=True`, was faster, with the script's workers or (where a pin thread eats what copies save) with
        none before and after, *and* the time in the copies fell to at most `fell_to` of what it was (0.7: pinned
        copies are several times faster where they matter). A gain without faster copies comes from the pin thread
        receiving batches in place of the main thread, and is not counted here. Where pinning was not tried: when
        ready batches were trained on faster with copies that cost nothing, and the script's own loader keeps up with
        ready ones. Ruled out where that is no faster.

    Example:
        before: `DataLoader(dataset, batch_size=64, num_workers=4)` with batches of 38 MB: 9 ms a copy.
        after: `DataLoader(dataset, batch_size=64, num_workers=4, pin_memory=True)`: 0.7 ms.

    Fix:
        `pin_memory=True` in the loader and `non_blocking=True` in `.to()`.

    When to ignore:
        When the machine is short of memory, or batches are made on the device anyway.

    References:
        pytorch.org, "A guide on good usage of non_blocking and pin_memory()"; NVIDIA/TensorRT-LLM#3147.
    """
    require(facts.accelerator, "There is no accelerator, so nothing is copied to one.")
    own = facts.configuration
    require(not own.pin_memory, "Batches are pinned as written.")
    require(own.non_blocking is not None, "No call that copies to the device was seen.")
    share = facts.number("transfer_share")
    tried = facts.steps(pin_memory=True) + facts.steps(pin_memory=True, non_blocking=True)
    tried = [each for each in tried if each.over.configuration.num_workers in (0, own.num_workers)]
    attributed = [each for each in tried if not each.faster or _copies_fell(facts, each, options["fell_to"])]
    return Ruling(
        points=share >= options["transfer_share"] and bool(attributed or not tried),
        explanation=f"Copies from pageable memory take {figures.share(share)} of each step.",
        evidence=[
            *facts.evidence("transfer_share", "transfer_ms", "transfer_gb_per_s", "gpu_pageable_bytes"),
            *(one for each in attributed if each.faster for one in facts.evidence("transfer_ms", trial=each.trial)),
        ],
        against=[
            one for each in tried if each not in attributed for one in facts.evidence("transfer_ms", trial=each.trial)
        ],
        experiments=attributed,
        settled_by="a run with pin_memory=True and non_blocking=True",
        bound=at_most(share),
        ceiling=ceilings.perfect_copies(facts),
        ceiling_shows=ceilings.keeps_up(facts) and not tried,
        remedy={"pin_memory": True} if own.non_blocking is True else {"pin_memory": True, "non_blocking": True},
    )


def _copies_fell(facts: Facts, tried: Experiment, fell_to: float) -> bool:
    """Whether the copies themselves became faster (FACTS: a gain is pinning's only where the transfer changed)."""
    return facts.number("transfer_ms", tried.trial) <= fell_to * facts.number("transfer_ms", tried.over)
