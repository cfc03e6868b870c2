"""Which configurations have their batches compared at the end of a launch, before one of them is recommended."""

from __future__ import annotations

from pindiag.gate import ungated
from pindiag.journal import Journal
from pindiag.model import Treatment
from pindiag.race import beyond_noise, chosen, floor, standings

MOST_GATED = 2
"""Of a live launch: the leader, and the next best that makes its batches in another way, should the leader fail."""


def leaders_to_gate(journal: Journal) -> list[Treatment]:
    """The leader of the race and its substitute, where they have yet to pass the gate."""
    leader = chosen(journal)
    if leader is None or leader == journal.baseline_id:
        return []
    noise, _ = floor(journal)
    ratios = standings(journal)
    faster = [name for name, ratio in ratios.items() if beyond_noise(ratio, noise) and name != leader]
    names = [leader, *sorted(faster, key=lambda name: -ratios[name].value)]
    by_making: dict[tuple[int, bool], Treatment] = {}
    for made in (journal.treatments[name] for name in names):
        by_making.setdefault((made.configuration.num_workers, made.configuration.pin_memory), made)
    return [made for made in list(by_making.values())[:MOST_GATED] if ungated(journal, made)]


def to_gate(journal: Journal, trial: str) -> list[Treatment]:
    """The leader itself, at the end of a launch of its own, where it has yet to pass the gate."""
    made = journal.treatments.get(trial)
    return [made] if made is not None and trial == chosen(journal) and ungated(journal, made) else []
