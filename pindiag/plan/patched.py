"""Pairs of fresh launches, the script as it was measured and with a patch in its files, in alternating order."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pindiag.journal import DISCOVER_TRIAL, PATCHED_TRIAL, Journal
from pindiag.model import AnyRecord, BlockOrder, LaunchOrder, RunSpec, Treatment
from pindiag.plan.budget import Budget
from pindiag.plan.known import Known
from pindiag.plan.treatments import treatment
from pindiag.plan.verification import FEWEST_PAIRS, Verification

LAUNCHES = 1 + 2 * FEWEST_PAIRS
"""That it takes at least: the first finds the training loader and how long its epochs are."""


class PatchPairs(Verification):
    """The patch, against the script as it was measured."""

    share = 0.9
    """The rest is for the first launch."""

    @property
    def _candidate(self) -> str | None:
        return PATCHED_TRIAL

    @property
    def _saves_later(self) -> bool:
        return self._known.spec.patch is not None and self._known.spec.patch.lives_on

    def _order(self, trial: str, block: BlockOrder) -> LaunchOrder:
        return LaunchOrder(
            purpose="verify",
            treatment=self._by_hand if trial == PATCHED_TRIAL else None,
            patched=trial == PATCHED_TRIAL,
            blocks=[block],
            natural_epochs=self._known.natural_epochs,
        )

    @property
    def _by_hand(self) -> Treatment | None:
        """What the patch leaves to the user, set by the probe; None: it leaves nothing."""
        baseline, patch = self._known.journal.baseline, self._known.spec.patch
        if baseline is None or patch is None or not patch.by_hand:
            return None
        made = treatment(baseline, patch.by_hand)
        return msgspec.structs.replace(made, id=PATCHED_TRIAL)

    def _epoch_s(self, trial: str) -> float:
        """Nothing is known of the patched script before its first launch: it is taken to be as slow."""
        return super()._epoch_s(self._known.baseline if trial == PATCHED_TRIAL else trial)


def next_pair(spec: RunSpec, records: Sequence[AnyRecord]) -> LaunchOrder | None:
    """What to launch next, or None when the pairs tell enough, the budget is spent, or the script fails by itself."""
    known = Known(spec, Journal(records))
    if known.stopped:
        return None
    if not known.journal.launches:
        block = known.block(1, DISCOVER_TRIAL)
        return LaunchOrder(purpose="discover", treatment=None, blocks=[block])
    return None if known.baseline_fails else PatchPairs(known, Budget(known)).next()
