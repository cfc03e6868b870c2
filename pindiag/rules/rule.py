"""What a rule is, and what it may say.

A rule is a function from facts to a `Ruling` (a cause of slowness, settled by experiments) or a `Statement` (what
stands by its own fact). It says what points to its cause and which trials remove it; only `settle` says `confirmed`,
and of a cause of slowness only where such a trial was faster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pindiag.model import Evidence, Finding, Severity, Status
from pindiag.rules.inputs import Experiment, Facts, Missing

SUSPECT = 1.1
"""A cause whose removal could bring less than this is not suspected without an experiment: the whole of it would
hardly be told from noise. One that was tried and is not settled stands behind what keeps up, and so does an open one
whose own facts account for less, where no trial gained."""

Options = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """What a rule about a cause of slowness found."""

    points: bool
    """Whether the facts of the script as written point to this cause."""
    explanation: str
    """What was measured, true whichever way it points."""
    evidence: list[Evidence]
    experiments: Sequence[Experiment] = ()
    """Measured trials that remove this cause and nothing else."""
    settled_by: str
    """The experiment that would settle it."""
    bound: float | None = None
    """The ratio that removing it could give at most."""
    accounted: float | None = None
    """The same of the part that the cause's own facts account for: an open cause ranks by it. None: all of it."""
    remedy: Mapping[str, bool | int | None] = field(default_factory=dict)
    """What to change while no experiment has shown a change to help."""
    against: list[Evidence] = field(default_factory=list)
    suspected_at_most: bool = False
    """No trial of a sweep takes this cause away."""
    irremovable: str | None = None
    """Why these experiments could not remove the cause here, though it may be there."""
    ceiling: Experiment | None = None
    """An ablation that removes this cause with its whole stage: what that leaves no room for, this cause does not
    cost."""
    ceiling_shows: bool = False
    """Whether other facts say that of this stage it is this cause that costs the time."""
    at_limit: bool = False
    """Its stage alone is as slow as training."""
    against_it: str = "This speaks against it."
    """What is said where it does not point to this cause."""
    weightless: bool = False
    """Nothing but the experiment says what the cause costs: until that ran it is never the primary one."""
    advice: str = ""
    """What to do, where it is no argument of the loader."""
    location: str | None = None
    """Where to do it, file:line."""

    @property
    def most(self) -> float | None:
        """What removing the cause could give at most.

        A ceiling of training itself says it better than any share of the step; one of a replay over another replay
        leaves out what training does beside it, so that the share may say less.
        """
        if self.ceiling is None:
            return self.bound
        above = max(self.ceiling.effect, 1.0)
        return above if self.bound is None or self.ceiling.over.kind == "configuration" else min(above, self.bound)

    @property
    def own(self) -> float | None:
        """What removing it could give by its own facts; a ceiling is that of all causes of its stage."""
        known = [ratio for ratio in (self.accounted, self.bound, self.most) if ratio is not None]
        return min(known, default=None)


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What a rule found that rests on its own fact and claims no gain."""

    status: Status
    explanation: str
    evidence: list[Evidence]
    severity: Severity | None = None
    remedy: Mapping[str, bool | int | None] = field(default_factory=dict)
    remedy_summary: str = ""
    """What to do, also where it is no argument of the loader."""
    location: str | None = None
    """Where to do it, file:line."""
    settled_by: str | None = None


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A root cause and how it is told."""

    code: str
    name: str
    title: str
    """One clause that states the cause as true."""
    limit: str
    """The stage or resource, as a headline's subject."""
    options: Options
    yields_to: tuple[str, ...]
    """Causes that own what both would claim."""
    check: Callable[[Facts, Options], Ruling | Statement]
    of_fact: bool = False
    """It rests on its own fact, or says that nothing is wrong: no cause of slowness, and it claims no gain."""

    @property
    def doc(self) -> str:
        """The documentation that `pindiag explain` prints."""
        return self.check.__doc__ or ""

    @property
    def summary(self) -> str:
        """Its first sentence."""
        return self.doc.strip().partition("\n")[0]


@dataclass(frozen=True)
class Judged:
    """A finding with what its rank and consequences are decided from."""

    finding: Finding
    rule: Rule
    best: Experiment | None = None
    bound: float | None = None
    at_limit: bool = False
    effect: float = 1.0
    """What removing the cause gave, or may give, as far as ranks go; 1 where nobody knows."""
    slight: bool = False
    """Whether removing it could bring next to nothing."""


def rule(
    code: str,
    name: str,
    *,
    title: str,
    limit: str,
    options: Options | None = None,
    yields_to: tuple[str, ...] = (),
    of_fact: bool = False,
) -> Callable[[Callable[[Facts, Options], Ruling | Statement]], Rule]:
    """Make a rule of a function; its docstring is what `pindiag explain` prints."""

    def make(check: Callable[[Facts, Options], Ruling | Statement]) -> Rule:
        return Rule(
            code=code,
            name=name,
            title=title,
            limit=limit,
            options=options or {},
            yields_to=yields_to,
            check=check,
            of_fact=of_fact,
        )

    return make


def require(condition: bool, reason: str) -> None:
    """Leave a rule that has nothing to judge here.

    Raises:
        Missing: with the reason, unless the condition holds.
    """
    if not condition:
        raise Missing(reason)


def at_most(share: float) -> float:
    """The speed-up that is left when a share of the step is taken away entirely (at most a factor of 100)."""
    return 1 / (1 - min(max(share, 0.0), 0.99))
