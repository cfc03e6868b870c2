"""What rules see: facts by name, and measured trials as experiments. Nothing here knows a script or a sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pindiag.model import (
    Analysis,
    BlockFigures,
    Ceilings,
    Configuration,
    Evidence,
    Fact,
    LoaderFigures,
    NoiseFloor,
    Ratio,
    Recommendation,
    Scalar,
    TargetFigures,
    Trial,
    Tweak,
    Verification,
)
from pindiag.rules.differences import Wanted, difference, meets

WORTH = 1.05
"""A gain of 5 % is what DESIGN.md section 7 asks an interval to exclude before a cause is ruled out."""
DOUBT = 0.05
"""The usual level of a corrected p."""
Between = Callable[[str, str], Ratio | None]


class Missing(Exception):
    """A fact that a rule needs has no value, or the rule has nothing to judge; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """All that rules, factors and the verdict are decided from."""

    facts: Sequence[Fact] = ()
    trials: Sequence[Trial] = ()
    blocks: Sequence[BlockFigures] = ()
    baseline: str | None = None
    recommendation: Recommendation | None = None
    verification: Verification | None = None
    noise_floor: NoiseFloor = field(default_factory=lambda: NoiseFloor(ratio=None, source="not measured"))
    ceilings: Ceilings = field(default_factory=lambda: Ceilings(compute_only=None, host_batch=[], loader_only=[]))
    target: TargetFigures = field(
        default_factory=lambda: TargetFigures(exit="stopped by pindiag", status="ok", files_changed=[])
    )
    loader: LoaderFigures | None = None
    between: Between | None = None
    """One trial over another, paired in the rounds that both ran in."""

    @classmethod
    def of(cls, analysis: Analysis, between: Between | None = None) -> Inputs:
        """The part of an analysis that rules may see, and how any two of its trials compare."""
        names = cls.__dataclass_fields__.keys() - {"between"}
        return cls(**{name: getattr(analysis, name) for name in names}, between=between)


@dataclass(frozen=True)
class Gain:
    """How much faster a trial ran than another, mostly the script as written."""

    ratio: float
    interval: tuple[float, float] | None
    significant: bool
    """The interval lies above 1, the corrected p is small, and the ratio is beyond the noise floor."""
    verified: bool
    """From fresh pairs that did not choose the trial."""
    rounds: int
    p: float = 0.0
    """Two-sided, of "no difference"; 0 where only the interval is known."""

    @property
    def excluded(self) -> bool:
        """The interval leaves no room for a gain worth having."""
        return self.interval is not None and self.interval[1] < WORTH

    @property
    def worth(self) -> bool:
        """A gain that is shown, and of 5 % or more."""
        return self.significant and self.ratio >= WORTH

    @property
    def slower(self) -> bool:
        """Shown to be slower by as much as a gain would have to be to be worth having."""
        return self.interval is not None and self.interval[1] < 1 and self.ratio <= 1 / WORTH

    @property
    def no_slower(self) -> bool:
        """Shown not to be slower by as much."""
        return self.interval is not None and self.interval[0] > 1 / WORTH


@dataclass(frozen=True)
class Experiment:
    """A measured trial that differs from another one, mostly the baseline, in nothing but the cause in question."""

    trial: Trial
    over: Trial
    keys: frozenset[str]
    """The arguments that are changed; empty where something else is (an ablation, a tweak)."""
    gain: Gain
    """Over the baseline: what the user gets."""
    step: Gain
    """Over `over`: what the removal of the cause alone gives."""
    faster: bool

    @property
    def effect(self) -> float:
        """What the removal of the cause alone gives."""
        return self.step.ratio

    @property
    def excluded(self) -> bool:
        """It leaves no room for a gain worth having.

        Without one of its stages training cannot be slower: where an ablation is, something disturbed it.
        """
        disturbed = self.trial.kind == "ablation" and self.step.slower
        return self.step.excluded and not disturbed


class Facts:
    """Facts by name, for the baseline unless a trial is named.

    Every accessor raises `Missing` where there is no value, so that a rule can read on without looking.
    """

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self._facts = {(fact.name, fact.trial): fact for fact in inputs.facts}
        self._trials = {trial.id: trial for trial in inputs.trials}
        self._verified = _verified(inputs)

    def fact(self, name: str, trial: Trial | None = None) -> Fact:
        """The fact itself, of a trial or of the run."""
        wanted = self.inputs.baseline if trial is None else trial.id
        found = self._facts.get((name, wanted)) or self._facts.get((name, None))
        if found is None:
            raise Missing(f"{name} was not measured.")
        if found.value is None:
            raise Missing(f"{name} was not measured: {found.reason or 'no reason is known'}.")
        return found

    def value(self, name: str, trial: Trial | None = None) -> Scalar:
        """The fact's value, never None."""
        return self.fact(name, trial).value

    def number(self, name: str, trial: Trial | None = None) -> float:
        """The value of a fact that is a finite number."""
        value = self.value(name, trial)
        if not isinstance(value, (int, float)) or not math.isfinite(value):
            raise Missing(f"{name} is not a finite number.")
        return float(value)

    def get(self, name: str, trial: Trial | None = None) -> float | None:
        """The same, or None where a rule can do without."""
        try:
            return self.number(name, trial)
        except Missing:
            return None

    def text(self, name: str) -> str | None:
        """The value of a fact in words; None where it has none."""
        try:
            return str(self.value(name))
        except Missing:
            return None

    def evidence(self, *names: str, trial: Trial | None = None) -> list[Evidence]:
        """Those of the named facts that were measured, as evidence."""
        found = []
        for name in names:
            try:
                fact = self.fact(name, trial)
            except Missing:
                continue
            shown = name if trial is None else f"{name} of {trial.id}"
            found.append(Evidence(name=shown, value=fact.value, unit=fact.unit, source=fact.source))
        return found

    @property
    def baseline(self) -> Trial:
        """The script as written."""
        trial = self._trials.get(self.inputs.baseline or "")
        if trial is None or trial.status != "measured":
            raise Missing("The script as written was not measured.")
        return trial

    @property
    def configuration(self) -> Configuration:
        """The arguments that the script itself gives."""
        return self.baseline.configuration

    @property
    def accelerator(self) -> bool:
        """Whether torch offers one."""
        return bool(self.value("accelerator_present"))

    @property
    def floor(self) -> float:
        """How far the baseline differs from itself; 1 where that is not known."""
        ratio = self.inputs.noise_floor.ratio
        return ratio if ratio is not None and ratio > 1 else 1.0

    def trial(self, name: str) -> Trial | None:
        """A trial by its id."""
        return self._trials.get(name)

    def measured(self) -> list[Trial]:
        """Configurations other than the baseline that have a throughput; another batch size is none of them."""
        return [trial for trial in self._tried() if not self._resized(trial)]

    def resized(self) -> list[Trial]:
        """Configurations with another batch size: they change training itself, so they compete with nothing."""
        return [trial for trial in self._tried() if self._resized(trial)]

    def _tried(self) -> list[Trial]:
        measured = [one for one in self._trials.values() if one.kind == "configuration" and one.status == "measured"]
        return [one for one in measured if one.id != self.inputs.baseline]

    def _resized(self, trial: Trial) -> bool:
        own = self._trials.get(self.inputs.baseline or "")
        return own is not None and trial.configuration.batch_size != own.configuration.batch_size

    @property
    def why_alone(self) -> str:
        """Why nothing was measured beside the script as written."""
        others = [one for one in self._trials.values() if one.kind == "configuration" and not self._resized(one)]
        untried = [trial for trial in others if trial.status in ("skipped", "failed")]
        if not untried:
            return "`--sweep` tries other configurations."
        return f"No other configuration could be measured: {(untried[0].reason or 'no reason is known').rstrip('.')}."

    def gain(self, trial: Trial) -> Gain | None:
        """Throughput over the baseline's; from the verification where fresh pairs tried this very trial."""
        verification = self.inputs.verification
        if verification and verification.ci95 and self._verified == trial.id:
            return self._gain(verification.ratio, verification.ci95, 0.0, True, verification.pairs)
        ratio = trial.versus_baseline
        if ratio is None:
            return None
        return self._gain(ratio.ratio, ratio.ci95, _corrected(ratio), False, ratio.rounds)

    def _gain(self, ratio: float, interval: tuple[float, float] | None, p: float, verified: bool, rounds: int) -> Gain:
        significant = interval is not None and interval[0] > 1 and p < DOUBT and ratio > self.floor
        return Gain(ratio, interval, significant, verified, rounds, p)

    def alone(self, **wanted: Wanted) -> list[Experiment]:
        """Measured trials that differ from the baseline in exactly these arguments.

        A wanted value may be a predicate: `alone(num_workers=lambda n: n > 4)`. What exists only with workers
        (prefetch_factor, persistent_workers) comes along with them and is not a difference of its own.
        """
        return self._experiments(self.baseline, wanted)

    def steps(self, **wanted: Wanted) -> list[Experiment]:
        """The same, and from any measured trial that in these arguments still is as the baseline."""
        own = self.configuration
        starts = [
            over
            for over in self.measured()
            if all(getattr(over.configuration, key) == getattr(own, key) for key in wanted)
        ]
        found = [each for over in starts for each in self._experiments(over, wanted)]
        return self.alone(**wanted) + [_among(each, len(found)) for each in found]

    def tweaks(self) -> list[Trial]:
        """Tweaks that have a throughput."""
        return [trial for trial in self._trials.values() if trial.kind == "tweak" and trial.status == "measured"]

    def planned(self, experiments: Sequence[Experiment]) -> list[Experiment]:
        """Experiments that a cause already shown by other means asks for.

        They are corrected for their own number, not for all configurations that were compared.
        """
        return [_among(self._uncorrected(each), len(experiments)) for each in experiments]

    def _uncorrected(self, each: Experiment) -> Experiment:
        pair = self.inputs.between(each.trial.id, each.over.id) if self.inputs.between else None
        if pair is None or pair.ci95 is None or each.gain.verified:
            return each
        step = self._gain(pair.ratio, pair.ci95, _corrected(pair), False, pair.rounds)
        return replace(each, step=step, faster=step.significant and _above_one(each.gain))

    def tweaked(self, tweak: Tweak) -> Experiment | None:
        """A tweak over the same configuration without it, the script as written where that was tried."""
        own = self.inputs.baseline
        return max(self.tweaked_each(tweak), key=lambda made: made.over.id == own, default=None)

    def tweaked_each(self, tweak: Tweak) -> list[Experiment]:
        """The same over every configuration that it was tried with: beside another mend too, it may come to count."""
        trials = [trial for trial in self.tweaks() if trial.tweak == tweak]
        plain = [one for one in self._trials.values() if one.kind == "configuration" and one.status == "measured"]
        pairs = [(trial, over) for trial in trials for over in plain if over.configuration == trial.configuration]
        return [made for trial, over in pairs if (made := self.experiment(trial, over))]

    def between(self, trial: Trial, over: Trial) -> Gain | None:
        """Throughput over another trial's: paired by round, or by way of the script as written.

        The latter where fresh pairs verified one of the two, or where they share too few rounds. It takes the errors
        of both for independent: where both ran beside the same blocks of the script as written they share its noise,
        so that interval is too wide rather than too narrow.
        """
        above, below = self.gain(trial), self.gain(over)
        if over.id == self.inputs.baseline:
            return above
        pair = self.inputs.between(trial.id, over.id) if self.inputs.between else None
        if pair and pair.ci95 and not any(gain and gain.verified for gain in (above, below)):
            return self._gain(pair.ratio, pair.ci95, _corrected(pair), False, pair.rounds)
        if above is None or below is None or not below.ratio > 0:
            return None
        ratio, rounds = above.ratio / below.ratio, min(above.rounds, below.rounds)
        return self._gain(ratio, _quotient(above, below), 0.0, False, rounds)

    def _experiments(self, over: Trial, wanted: Mapping[str, Wanted]) -> list[Experiment]:
        found = []
        for trial in self._tried():
            keys = difference(over.configuration, trial.configuration)
            if keys == frozenset(wanted) and all(meets(trial.configuration, key, wanted[key]) for key in keys):
                experiment = self.experiment(trial, over, keys)
                found += [experiment] if experiment else []
        return found

    def experiment(self, trial: Trial, over: Trial, keys: frozenset[str] = frozenset()) -> Experiment | None:
        """What a trial gives over another one; None where either was not measured often enough to say."""
        over = self._with_its_threads(over, trial)
        gain, step = self.gain(trial), self.between(trial, over)
        if gain is None or step is None:
            return None
        return Experiment(trial, over, keys, gain, step, step.significant and _above_one(gain))

    def _with_its_threads(self, over: Trial, trial: Trial) -> Trial:
        """Where a pin thread took intra-op threads away, what has no such thread is compared with who has them back.

        Otherwise whatever goes without a pin thread would get the credit for them.
        """
        if trial.kind != "configuration" or _pin_thread(trial.configuration) or not _pin_thread(over.configuration):
            return over
        lost = self.tweaked("intraop_threads")
        return lost.trial if lost and lost.faster and lost.over.id == over.id else over


def _verified(inputs: Inputs) -> str | None:
    """What the fresh pairs tried: what comes first, or what they did not bear out."""
    if inputs.verification is not None and inputs.verification.trial is not None:
        return inputs.verification.trial
    tried = {block.trial for block in inputs.blocks if block.purpose == "verify"} - {inputs.baseline}
    recommended = inputs.recommendation.trial if inputs.recommendation else None
    return next(iter(sorted(tried)), recommended)


def _pin_thread(configuration: Configuration) -> bool:
    """Whether it has one on an accelerator."""
    return configuration.pin_memory and configuration.num_workers > 0


def _among(each: Experiment, count: int) -> Experiment:
    """One of several steps that were looked at: its p is corrected for their number (Bonferroni)."""
    return replace(each, faster=each.faster and each.step.p * count < DOUBT)


def _above_one(gain: Gain) -> bool:
    return gain.interval is not None and gain.interval[0] > 1


def _quotient(above: Gain, below: Gain) -> tuple[float, float] | None:
    """The interval of a quotient of two ratios with independent errors."""
    if not above.interval or not below.interval or min(*above.interval, *below.interval) <= 0:
        return None
    half = math.hypot(*(math.log(high / low) / 2 for low, high in (above.interval, below.interval)))
    ratio = above.ratio / below.ratio
    return ratio * math.exp(-half), ratio * math.exp(half)


def _corrected(ratio: Ratio) -> float:
    return 1.0 if ratio.p_corrected is None else ratio.p_corrected
