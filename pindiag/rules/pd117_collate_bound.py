"""PD117 collate_bound."""

from __future__ import annotations

from pindiag import figures
from pindiag.model import Trial
from pindiag.rules import ceilings
from pindiag.rules.inputs import Facts, Missing
from pindiag.rules.rule import Options, Ruling, at_most, rule
from pindiag.rules.supply import makers_are_the_limit, more_workers, more_workers_remedy, outpaced, supply


@rule(
    "PD117",
    "collate_bound",
    title="Putting samples together into batches takes longer than fetching them, and training waits for it",
    limit="Collating batches",
    options={"wait_share": 0.05, "collate_share": 0.5, "busy_share": 0.5},
    yields_to=("per_item_overhead", "worker_contention"),
)
def collate_bound(facts: Facts, options: Options) -> Ruling:
    """The collate function (padding, tokenizing, stacking many small pieces) takes most of what a batch costs.

    What it means:
        Fetching gives samples; the `collate_fn` makes one batch of them. It runs once a batch, in one worker (without
        workers in the training process), and loops in Python over what it is given. Faster storage or cheaper
        transforms change nothing about it.

    How it is decided:
        The loop waits at least `wait_share` of each step (0.05: below, a free loader would bring less than 1.05 ×),
        who makes the batches is at work at least `busy_share` of the time (0.5: idle workers are not what is missing),
        and `collate_share` of the work on a batch is collating (0.5: what takes more than half of it decides). Workers
        note both; a script without workers is judged by a trial that had some. Confirmed when more workers alone were
        faster; or when training on ready batches was, while the workers alone (where there are any) are as slow as
        training. Ruled out where the workers alone deliver clearly more than training takes.

    Example:
        before: `for row, sample in enumerate(samples): for column, value in sample: table[row, column] = value`: 30 ms
        for a batch whose samples are fetched in 1 ms.
        after: `table[rows, columns] = values` with three tensors, or `pad_sequence(samples, batch_first=True)`.

    Fix:
        Whole-array operations in place of loops (`torch.nn.utils.rnn.pad_sequence`, `index_put_`, `scatter_`);
        tokenizing in the dataset, or once beforehand; samples of like length in one batch; more workers as long as CPUs
        are left.

    When to ignore:
        When what is collated will be smaller later.

    References:
        pytorch/pytorch#26957, shenweichen/DeepCTR-Torch#70.
    """
    wait, made, told = facts.number("wait_share"), supply(facts), _told_by(facts)
    fetch, collate = (facts.number(name, told) for name in ("worker_fetch_ms", "worker_collate_ms"))
    share = collate / (fetch + collate) if fetch + collate > 0 else 0.0
    place = _place(facts)
    mostly = share >= options["collate_share"]
    return Ruling(
        points=mostly
        and wait >= options["wait_share"]
        and made.busy_share >= options["busy_share"]
        and not outpaced(facts),
        explanation=f"The loop waits {figures.share(wait)} of each step for its batch; {made.who} {made.verb} at work "
        f"{figures.share(made.busy_share)} of the time, and of the {figures.milliseconds(fetch + collate)} ms that a "
        f"batch takes, collating{f' at {place}' if place else ''} takes {figures.milliseconds(collate)}.",
        evidence=[
            *facts.evidence("wait_share", *made.names),
            *facts.evidence("worker_fetch_ms", "worker_collate_ms", "collate_place", trial=told),
        ],
        experiments=more_workers(facts),
        settled_by="a run with more workers, or on batches that are ready,",
        bound=at_most(wait),
        accounted=at_most(wait * made.busy_share * share),
        ceiling=ceilings.perfect_loader(facts),
        ceiling_shows=mostly and makers_are_the_limit(facts),
        at_limit=mostly and ceilings.as_slow_as_training(ceilings.workers_alone(facts)),
        remedy=more_workers_remedy(facts),
        advice="Make collating cheaper: whole-array operations in place of loops over samples, and what depends on one "
        "sample only in the dataset.",
        location=place,
    )


def _told_by(facts: Facts) -> Trial | None:
    """None: the script as written, whose workers told it; else a trial that had workers."""
    if facts.configuration.num_workers > 0:
        return None
    told = [trial for trial in facts.measured() if facts.get("worker_collate_ms", trial) is not None]
    if not told:
        raise Missing("The script as written has no workers, and no trial with workers told how long collating takes.")
    return min(told, key=lambda trial: trial.configuration.num_workers)


def _place(facts: Facts) -> str | None:
    try:
        return str(facts.value("collate_place"))
    except Missing:
        return None
