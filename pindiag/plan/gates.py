"""Which configurations have their batches compared at the end of a launch, before one of them is recommended.

A tweak changes no batch: it needs no more than what its configuration passes.
"""

from __future__ import annotations

from pindiag.gate import ungated
from pindiag.journal import Journal
from pindiag.model import Treatment
from pindiag.race import beyond_noise, chosen, floor, leader, standings

MOST_GATED = 2
"""Of a live launch: the leader, and the next best that makes its batches in another way, should the leader fail."""


def leaders_to_gate(journal: Journal) -> list[Treatment]:
    """The leader of the race and its substitute, where they have yet to pass the gate."""
    leaders = _leaders(journal)
    if not leaders:
        return []
    noise, _ = floor(journal)
    ratios = standings(journal)
    faster = [name for name, ratio in ratios.items() if beyond_noise(ratio, noise) and name not in leaders]
    names = [*leaders, *sorted(faster, key=lambda name: -ratios[name].value)]
    by_making: dict[tuple[int, bool], Treatment] = {}
    for made in (journal.treatments[name] for name in names):
        by_making.setdefault((made.configuration.num_workers, made.configuration.pin_memory), made)
    return [made for made in list(by_making.values())[:MOST_GATED] if ungated(journal, made)]


def to_gate(journal: Journal, trial: str) -> list[Treatment]:
    """The leader itself, at the end of a launch of its own, where it has yet to pass the gate."""
    own = _untweaked(journal, trial)
    if own not in _leaders(journal):
        return []
    made = journal.treatments[own]
    return [made] if ungated(journal, made) else []


def _leaders(journal: Journal) -> list[str]:
    """The configurations of what comes first and of what is chosen, the script as written apart."""
    ahead = [_untweaked(journal, name) for name in (leader(journal), chosen(journal)) if name is not None]
    return [name for name in dict.fromkeys(ahead) if name in journal.treatments and name != journal.baseline_id]


def _untweaked(journal: Journal, trial: str) -> str:
    made = journal.treatments.get(trial)
    return trial if made is None or made.kind != "tweak" else made.configuration.id
