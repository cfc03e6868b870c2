"""How many intra-op threads the main thread of a fresh process has, with a pin thread and without (FACTS.md A6).

Any earlier parallel operation fixes the number, so inside a live launch it cannot be known: the first launch tells it
for the script as written, and a scout for the opposite.
"""

from __future__ import annotations

from collections.abc import Iterable

from pindiag.journal import Journal
from pindiag.model import LoaderChosen, Treatment
from pindiag.plan.known import Known
from pindiag.plan.treatments import has_pin_thread, serves_pinning, treatment


class Threads:
    """The main thread's intra-op threads by kind of pinning."""

    def __init__(self, journal: Journal) -> None:
        self._by_kind: dict[bool, int] = {}
        self._accelerator = None if journal.chosen is None else journal.chosen.accelerator
        self._baseline = journal.baseline
        for launch in journal.launches:
            found = launch.first(LoaderChosen)
            if found is not None and found.intraop_threads is not None and launch.purpose in ("discover", "scout"):
                kind = has_pin_thread(found.configuration, self._accelerator)
                self._by_kind.setdefault(kind, found.intraop_threads)

    def under(self, made: Treatment) -> int | None:
        """The number that a fresh process has under a treatment; None where it is not known or cannot differ."""
        if not serves_pinning(self._accelerator):
            return None
        if made.tweak == "intraop_threads":
            number = made.changes["intraop_threads"]
            return None if number is None else int(number)
        return None if self._alike else self._by_kind.get(self.pin_thread(made))

    def same(self, one: Treatment, other: Treatment) -> bool:
        """Whether two treatments leave the main thread the same number."""
        return self._alike or self.pin_thread(one) == self.pin_thread(other)

    def pin_thread(self, made: Treatment) -> bool:
        """Whether a treatment has a pin thread; a replay has what the baseline has, so that it removes one thing."""
        replays = made.ablation in ("compute_only", "host_batch")
        configuration = self._baseline if replays else made.configuration
        return configuration is not None and has_pin_thread(configuration, self._accelerator)

    @property
    def given_back(self) -> int | None:
        """The number without a pin thread, where a pin thread takes some of it away."""
        left, whole = self._by_kind.get(True), self._by_kind.get(False)
        return whole if left is not None and whole is not None and left < whole else None

    @property
    def _alike(self) -> bool:
        return len(self._by_kind) == 2 and len(set(self._by_kind.values())) == 1


def scout(known: Known, compared: Iterable[Treatment]) -> Treatment | None:
    """The script as written with or without a pin thread, whichever it is not; None where there is nothing to tell.

    Args:
        known: the state of the run.
        compared: all that is to run live.
    """
    baseline, accelerator = known.journal.baseline, known.accelerator
    if baseline is None or any(launch.purpose == "scout" and not launch.lost for launch in known.journal.launches):
        return None
    own = has_pin_thread(baseline, accelerator)
    opposite = [made for made in compared if has_pin_thread(made.configuration, accelerator) != own]
    if not opposite:
        return None
    if own:
        return treatment(baseline, {"pin_memory": False})
    workers = baseline.num_workers or min(made.configuration.num_workers for made in opposite)
    return treatment(baseline, {"num_workers": workers, "pin_memory": True})
