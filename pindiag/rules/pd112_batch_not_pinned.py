"""PD112 batch_not_pinned."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules import copies
from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Statement, require, rule


@rule(
    "PD112",
    "batch_not_pinned",
    title="pin_memory=True is set, and the batches are not pinned all the same",
    limit="The copy from pageable memory",
    options={"copy_share": 0.05},
    of_fact=True,
)
def batch_not_pinned(facts: Facts, options: Options) -> Statement:
    """The loader is told to pin, but its batches are of a class that torch does not look into, and stay as they are.

    What it means:
        torch pins tensors, and what it finds in dicts, lists, tuples and named tuples. An object of any other class
        passes unchanged, without a word, unless it has a method `pin_memory()`. Its copies to the device then come
        from pageable memory, and `non_blocking=True` overlaps with nothing.

    How it is decided:
        By its fact: of the first batch of the loader, some tensor was not pinned, although the loader pins; and not
        all tensors that were copied to the device were pinned. It claims no gain. `medium` where copies take at least
        `copy_share` of each step (0.05: below, nothing that is done about copies could bring 1.05 ×).

    Example:
        before: `class Batch: ...`, a plain class with `images` and `labels`, returned by a `collate_fn`.
        after: the same class with `def pin_memory(self): self.images = self.images.pin_memory(); return self`; or a
        named tuple.

    Fix:
        `def pin_memory(self): self.images = self.images.pin_memory(); ...; return self` in that class.

    When to ignore:
        When the tensors that are not pinned are never copied to the device.

    References:
        open-mmlab/mmdetection#11417, ai2cm/ace#628, pytorch/pytorch#67831, pytorch/pytorch#32150;
        pytorch.org, "Memory pinning" in the documentation of torch.utils.data.
    """
    require(facts.accelerator, "There is no accelerator, so nothing is pinned.")
    require(facts.configuration.pin_memory, "As written the loader does not pin.")
    pinned, copied = bool(facts.value("batch_pinned")), facts.get("transfer_pinned_share")
    evidence = facts.evidence("batch_pinned", "transfer_pinned_share", "transfer_share", "gpu_pageable_bytes")
    if pinned or copied == 1:
        what = "All tensors of its first batch" if pinned else "All tensors that are copied to the device"
        return Statement(status="ruled_out", explanation=f"{what} are pinned.", evidence=evidence)
    seen = "" if copied is None else f" Of the copies to the device {figures.share(copied)} come from pinned memory."
    return Statement(
        status="confirmed",
        severity=copies.severity(facts, options["copy_share"]),
        explanation=f"The loader pins, but tensors of its batches are not pinned.{seen}",
        evidence=evidence,
        remedy_summary="Give the class of the batches a method `pin_memory()` that pins its tensors and returns it.",
    )
