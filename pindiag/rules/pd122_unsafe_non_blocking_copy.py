"""PD122 unsafe_non_blocking_copy."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Statement, require, rule


@rule(
    "PD122",
    "unsafe_non_blocking_copy",
    title="The script writes host memory again while a copy to the GPU may still be reading it",
    limit="A copy that nobody waits for",
    of_fact=True,
)
def unsafe_non_blocking_copy(facts: Facts, _options: Options) -> Statement:
    """A pinned buffer that was copied with `non_blocking=True` is filled anew before the copy is known to be over.

    What it means:
        Such a copy is only asked for; the GPU reads the memory later. What is written there meanwhile can reach the
        GPU in place of the batch, or mixed with it: training goes on with wrong data, without an error.

    How it is decided:
        By its fact: in the first batches of the script as written, host memory that lay pinned and was copied without
        blocking had changed when it was looked at again, and no call had waited for the device in between. It claims no
        gain, and does not show that wrong data arrived: that depends on how fast the copy was. Only copies to the
        device are watched; of copies to the host that are read too soon it knows nothing.

    Example:
        before: `buffer.copy_(batch); inputs = buffer.to(device, non_blocking=True)` in each step, with one pinned
        `buffer`.
        after: `copied.synchronize(); buffer.copy_(batch); inputs = buffer.to(device, non_blocking=True);
        copied.record()`, with `copied = torch.cuda.Event()`; or no buffer, and `pin_memory=True` in the loader.

    Fix:
        Two buffers or more by turns, each with a `torch.cuda.Event` that is recorded after its copy and waited for
        before it is filled again; or `non_blocking=False` for this copy.

    When to ignore:
        When something that was not seen, such as another library's own stream, waits for the copy.

    References:
        pytorch.org, "A guide on good usage of non_blocking and pin_memory()".
    """
    require(facts.accelerator, "There is no accelerator, so nothing is copied to one.")
    places = facts.number("unsafe_copies")
    evidence = facts.evidence("unsafe_copies")
    if places == 0:
        said = "No host memory was written again before its copy was known to be over."
        return Statement(status="ruled_out", explanation=said, evidence=evidence)
    where = facts.fact("unsafe_copies").source
    many = "a place" if places == 1 else f"{figures.count(places)} places"
    return Statement(
        status="confirmed",
        severity="high",
        explanation=f"Pinned memory that is copied without blocking at {many} is written again with no wait in "
        f"between: {where}.",
        evidence=evidence,
        remedy_summary="Fill such a buffer only after an event recorded behind its copy, or copy it with blocking.",
        location=where.partition(", ")[0] if where.partition(", ")[0].rpartition(":")[2].isdigit() else None,
    )
