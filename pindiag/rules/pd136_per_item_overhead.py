"""PD136 per_item_overhead."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules import ceilings
from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Ruling, at_most, require, rule
from pindiag.rules.supply import Supply, makers_are_the_limit, outpaced, supply


@rule(
    "PD136",
    "per_item_overhead",
    title="Small items are fetched one by one, and the calls cost more than what they fetch",
    limit="Fetching small items one by one",
    options={"item_bytes": 4096, "item_us": 50, "wait_share": 0.05, "busy_share": 0.5, "cpu_share": 0.5},
)
def per_item_overhead(facts: Facts, options: Options) -> Ruling:
    """Rows that lie in memory are indexed one at a time and stacked again, thousands of Python calls for one batch.

    What it means:
        Without `__getitems__`, a loader calls the dataset's `__getitem__` for every item and stacks what it gets.
        For a row of numbers both are overhead: cutting the whole batch out of the table by one indexing operation takes
        a hundredth of that.

    How it is decided:
        The dataset is asked for single items of at most `item_bytes` (4096: copying them takes less than a
        microsecond), fetching and collating one takes at most `item_us` of CPU time (50: a row of a table takes 5 to
        20, the smallest image hundreds, so this is calls and not work), the loop waits at least `wait_share` of each
        step (0.05: below, a free loader would bring less than 1.05 ×), and who makes the batches is at work at least
        `busy_share` of the time (0.5: idle makers are not what is missing), `cpu_share` of it on a CPU (0.5: what takes
        more than half of the time decides). Confirmed when training on ready batches was faster, while the workers
        alone (where there are any) are as slow as training. Ruled out where that was no faster.

    Example:
        before: `TensorDataset` with 2 048 rows of 20 numbers a batch: 10 ms in the loader beside a step of 3.
        after: `def __getitems__(self, indices): return self.table[indices]` in the dataset, and
        `collate_fn=lambda rows: rows`: one fetch a batch.

    Fix:
        `def __getitems__(self, indices): return self.table[indices]` with a `collate_fn` that passes it on; or
        `DataLoader(dataset, batch_size=None, sampler=BatchSampler(RandomSampler(dataset), 2048, False))`; or no loader:
        `for rows in torch.randperm(n).split(2048): table[rows]`.

    When to ignore:
        When items will become expensive later.

    References:
        pytorch/pytorch#4959, pytorch/pytorch#10260, pytorch/pytorch#26957.
    """
    require(not facts.value("dataset_fetches_batches"), "The dataset gives whole batches already.")
    samples, size = facts.number("batch_samples"), facts.number("sample_bytes")
    require(samples > 1, "A batch is one item.")
    wait, made = facts.number("wait_share"), supply(facts)
    item_us = _item_us(facts, samples, made)
    small = size <= options["item_bytes"] and item_us <= options["item_us"]
    return Ruling(
        points=small
        and wait >= options["wait_share"]
        and made.busy_share >= options["busy_share"]
        and made.cpu_share >= options["cpu_share"]
        and not outpaced(facts),
        explanation=f"The loop waits {figures.share(wait)} of each step; a batch is fetched by "
        f"{figures.count(samples)} calls for {figures.byte_size(size)} each, which take "
        f"{figures.milliseconds(item_us)} µs of CPU time an item, collating included.",
        evidence=facts.evidence("wait_share", "batch_samples", "sample_bytes", *made.names, *_took(facts)),
        settled_by="a run whose dataset has `__getitems__`, or on batches that are ready,",
        bound=at_most(wait),
        ceiling=ceilings.perfect_loader(facts),
        ceiling_shows=small and makers_are_the_limit(facts),
        at_limit=ceilings.as_slow_as_training(ceilings.workers_alone(facts)),
        advice="Fetch whole batches: give the dataset `__getitems__`, or index its tensors with a BatchSampler as "
        "`sampler` and `batch_size=None`.",
    )


def _took(facts: Facts) -> tuple[str, ...]:
    return ("worker_fetch_ms", "worker_collate_ms") if facts.configuration.num_workers else ("wait_ms",)


def _item_us(facts: Facts, samples: float, made: Supply) -> float:
    """CPU time of fetching and collating an item; without workers the loop waits for just that."""
    return 1000 * made.cpu_share * sum(facts.number(name) for name in _took(facts)) / samples
