"""PD138 extra_cuda_context."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Statement, require, rule


@rule(
    "PD138",
    "extra_cuda_context",
    title="More CUDA contexts are open than the one that trains",
    limit="CUDA contexts that do not train",
    of_fact=True,
)
def extra_cuda_context(facts: Facts, _options: Options) -> Statement:
    """Workers use CUDA, or the training process has a context on a GPU that it does not train on.

    What it means:
        Each process that touches CUDA opens a context: some hundred megabytes of the GPU's memory. Kernels of
        different processes take turns on a GPU, so a worker that uses it holds training up; one that was forked from
        a process that uses CUDA fails. A context on another GPU than the one that trains takes memory there, from
        whoever trains on it; every rank of a job that pins or allocates before it has chosen its GPU opens one on the
        first.

    How it is decided:
        By its fact: torch is asked in each worker that made a batch, and in the training process after its first
        block; asking opens none. It claims no gain. `medium` where a worker has one, `low` where it is another GPU.
        What a library opens without torch is not seen.

    Example:
        before: a dataset that turns images on `cuda:0` in two spawned workers: three contexts on one GPU.
        after: the dataset gives CPU tensors, and `images = augment(images.to(device))` turns a whole batch in the loop.

    Fix:
        CPU tensors in the dataset, and augmentation on the GPU in the training loop, a batch at a time;
        `torch.cuda.set_device(rank)` first of all, or `CUDA_VISIBLE_DEVICES`.

    When to ignore:
        When the other GPU is used on purpose, by a model that spans several.

    References:
        pytorch/pytorch#58626, pytorch/pytorch#21081, pytorch/pytorch#40403.
    """
    require(facts.accelerator, "There is no accelerator, so no CUDA context.")
    workers, others = facts.number("worker_contexts"), facts.number("other_gpu_contexts")
    evidence = facts.evidence("worker_contexts", "other_gpu_contexts")
    if not workers and not others:
        said = "Only the training process has a CUDA context, on the GPU that trains."
        return Statement(status="ruled_out", explanation=said, evidence=evidence)
    where = facts.fact("other_gpu_contexts").source
    found = [f"{figures.count(workers)} workers have a CUDA context of their own."] if workers else []
    found += [f"The training process has a context on {where} as well, where it does not train."] if others else []
    mend = ["Keep CUDA out of the dataset: hand over CPU tensors."] if workers else []
    mend += ["Choose the GPU before anything else: `torch.cuda.set_device(...)`, or CUDA_VISIBLE_DEVICES."] * bool(
        others
    )
    return Statement(
        status="confirmed",
        severity="medium" if workers else "low",
        explanation=" ".join(found),
        evidence=evidence,
        remedy_summary=" ".join(mend),
    )
