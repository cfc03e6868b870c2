"""PD113 pin_without_accelerator."""

from __future__ import annotations

from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Statement, require, rule


@rule(
    "PD113",
    "pin_without_accelerator",
    title="pin_memory=True is set, and there is no accelerator to pin for",
    limit="Nothing",
    of_fact=True,
)
def pin_without_accelerator(facts: Facts, _options: Options) -> Statement:
    """The script asks for pinned memory on a machine without an accelerator, where it does nothing but warn.

    What it means:
        Pinned memory serves copies to an accelerator. torch finds none here, says so in a warning and goes on
        unpinned.

    How it is decided:
        By its fact: the constructor says `pin_memory=True`, and torch offers no accelerator. It claims no gain.

    Example:
        before: `DataLoader(dataset, pin_memory=True)` on a laptop without a GPU: a warning at every start.
        after: `DataLoader(dataset, pin_memory=torch.cuda.is_available())`.

    Fix:
        `pin_memory=torch.cuda.is_available()`.

    When to ignore:
        When the script runs here only to be tried.

    References:
        karpathy/nanoGPT#120.
    """
    require(bool(facts.value("pin_asked")), "The script does not ask for pinned memory.")
    require(not facts.accelerator, "There is an accelerator.")
    return Statement(
        status="confirmed",
        severity="low",
        explanation="The loader is made with pin_memory=True, and torch finds no accelerator; batches stay unpinned.",
        evidence=facts.evidence("pin_asked", "accelerator_present"),
        remedy={"pin_memory": False},
        remedy_summary="Pin only where there is an accelerator: `pin_memory=torch.cuda.is_available()`.",
    )
