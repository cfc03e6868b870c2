"""PD131 fd_exhaustion."""

from __future__ import annotations

from pindiag import figures
from pindiag.model import Severity
from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Statement, require, rule

NAMES = ("open_files_per_step", "open_files_least", "open_files_most", "open_files_own_limit", "tensors_per_batch")
REMEDY = (
    "Copy what is kept (`labels.clone()`), or keep numbers of it; else raise the limit (ulimit -n 65536) or call "
    "torch.multiprocessing.set_sharing_strategy('file_system')."
)


@rule(
    "PD131",
    "fd_exhaustion",
    title="The script keeps tensors that workers sent, and each holds one of its file descriptors",
    limit="File descriptors",
    options={"files_per_step": 0.5, "epochs": 100},
    of_fact=True,
)
def fd_exhaustion(facts: Facts, options: Options) -> Statement:
    """The training process opens more files with every batch, and will run out of descriptors.

    What it means:
        A tensor that comes from a worker lies in shared memory, and the training process holds a file descriptor for
        it as long as the tensor, or a view of it, lives. Batches that are kept, be it the labels alone, use them up;
        the error then comes from the loader and names no batch.

    How it is decided:
        By its fact: in each sampled block of the script as written the main process held more descriptors at the end,
        in the median by at least `files_per_step` for each step (0.5: less than one tensor in every other batch is none
        that is kept of each), and at that pace its limit is reached within `epochs` epochs (100: beyond, few scripts
        train). `high` where the limit is reached within the first epoch, or was reached; `low` where that takes longer,
        since what is kept may be let go after each epoch, which blocks do not see. It claims no gain.

    Example:
        before: `seen.append(labels)` in an epoch of 5 000 batches, with `ulimit -n` at 1 024: each keeps a descriptor
        open.
        after: `seen.append(labels.clone())`: the memory that the worker shared is let go.

    Fix:
        `seen.append(labels.clone())`, or a higher limit, or the sharing strategy `file_system`.

    When to ignore:
        When what is kept is let go after each epoch and an epoch stays below the limit.

    References:
        pytorch/pytorch#973, pytorch/pytorch#11201, pytorch/pytorch#41465.
    """
    if facts.inputs.target.status == "failed" and facts.text("target_failure") == "open_files":
        return Statement(
            status="confirmed",
            severity="high",
            explanation="The script as written ran out of file descriptors.",
            evidence=facts.evidence("target_failure", *NAMES),
            remedy_summary=REMEDY,
        )
    require(facts.configuration.num_workers > 0, "The script as written has no workers.")
    grown, limit = facts.number("open_files_per_step"), facts.number("open_files_own_limit")
    if grown < options["files_per_step"]:
        said = "The main process holds no more descriptors after a block than before it."
        return Statement(status="ruled_out", explanation=said, evidence=facts.evidence(*NAMES))
    steps = (limit - facts.number("open_files_least")) / grown
    epoch = facts.get("batches_per_epoch")
    said = f"With each step the main process holds {figures.significant(grown)} descriptors more; its limit of "
    said += f"{figures.count(limit)} is reached after {figures.significant(steps)} steps{_of_epochs(steps, epoch)}."
    if epoch is not None and steps > options["epochs"] * epoch:
        return Statement(status="ruled_out", explanation=said, evidence=facts.evidence(*NAMES))
    return Statement(
        status="confirmed",
        severity=_severity(steps, epoch),
        explanation=said,
        evidence=facts.evidence(*NAMES, "batches_per_epoch"),
        remedy_summary=REMEDY,
    )


def _severity(steps: float, epoch: float | None) -> Severity:
    return "high" if epoch is None or steps <= epoch else "low"


def _of_epochs(steps: float, epoch: float | None) -> str:
    if not epoch:
        return ""
    if steps <= epoch:
        return f", {figures.share(steps / epoch)} of its first epoch"
    return f", {figures.significant(steps / epoch)} epochs, unless what is kept is let go after each"
