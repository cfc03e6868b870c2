"""PD121 second_loader."""

from __future__ import annotations

from pindiag import figures
from pindiag.model import Fact
from pindiag.rules.inputs import Facts, Missing
from pindiag.rules.rule import Options, Ruling, at_most, require, rule

OF_EPOCH, OF_STEP = "other_loader_epoch_wait_share", "other_loader_step_wait_share"


@rule(
    "PD121",
    "second_loader",
    title="The script waits for another loader than the one that trains",
    limit="A second loader",
    options={"wait_share": 0.05},
)
def second_loader(facts: Facts, options: Options) -> Ruling:
    """A loader beside the training one, mostly that of a validation, keeps the script waiting.

    What it means:
        A script may have several loaders, each with arguments of its own. Those of the training loader change nothing
        about the time in which the script waits for another: between epochs, or in each step that takes a batch from
        both.

    How it is decided:
        Waiting for one of them takes at least `wait_share` of an epoch, or of a step where it is read beside the
        training loader (0.05: below, a faster one would bring less than 1.05 ×). Blocks leave out what lies between
        epochs, and no treatment touches another loader, so it is suspected at most, until it is swept itself.

    Example:
        before: `DataLoader(validation, batch_size=64)` without workers: 9 s of waiting after each epoch of 30 s.
        after: `DataLoader(validation, batch_size=64, num_workers=4, persistent_workers=True)`.

    Fix:
        Workers for that loader too, or a validation every few epochs.

    When to ignore:
        When what is validated is short for the sake of a trial only.

    References:
        pytorch/pytorch#130610.
    """
    found = [fact for name in (OF_EPOCH, OF_STEP) if (fact := _known(facts, name))]
    require(bool(found), _why_unknown(facts))
    longest = max(found, key=lambda fact: facts.number(fact.name))
    share = facts.number(longest.name)
    place = longest.source.partition(": ")[2]
    return Ruling(
        points=share >= options["wait_share"],
        explanation=f"Waiting for the loader at {place} takes {figures.share(share)} of "
        f"{'an epoch' if longest.name == OF_EPOCH else 'each step'}.",
        evidence=facts.evidence(OF_EPOCH, OF_STEP, "other_loader_epoch_share", "other_loader_wait_ms"),
        settled_by=f"a run that looks at that loader (--loader {place})",
        bound=at_most(share),
        advice="Give that loader workers, and pinning if its batches go to a GPU.",
        location=place,
    )


def _known(facts: Facts, name: str) -> Fact | None:
    return facts.fact(name) if facts.get(name) is not None else None


def _why_unknown(facts: Facts) -> str:
    try:
        facts.fact(OF_EPOCH)
    except Missing as missing:
        return str(missing)
    return "How long the script waits for another loader is not a finite number."
