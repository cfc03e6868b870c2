"""What to recommend, how firmly, and what verification says about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pindiag import race
from pindiag.analysis.trials import ratio_of
from pindiag.journal import Journal
from pindiag.model import NoiseFloor, Ratio, Recommendation, Trial, Verification
from pindiag.stats import FEWEST_FOR_INTERVAL, Mean, compare, geometric_mean, paired_ratios

FEWEST_PAIRS = 4
"""Fresh pairs behind a gain that is called verified."""
FEWEST_ROUNDS = 6
"""Rounds that did not choose it behind a gain that is called measured."""

Firmness = Literal["verified", "measured", "provisional"]


def noise_floor(journal: Journal) -> NoiseFloor:
    """How far the script as written differs from itself."""
    ratio, rounds = race.floor(journal)
    if ratio is None:
        return NoiseFloor(
            ratio=None, source=f"rounds with two baseline blocks: {rounds}; {FEWEST_FOR_INTERVAL} are needed"
        )
    return NoiseFloor(ratio=ratio, source=f"baseline against baseline, {rounds} rounds")


def verification(journal: Journal) -> Verification | None:
    """The pairs of launches that did not choose what they verify; None where no pair is complete."""
    candidate, baseline = _verified_trial(journal), journal.baseline_id
    if candidate is None or baseline is None:
        return None
    rates = journal.rates("verify")
    ratios = paired_ratios(rates, baseline).get(candidate)
    if not ratios:
        return None
    mean = geometric_mean(ratios)
    complete = {rate.round for rate in rates if rate.trial == candidate} & {
        rate.round for rate in rates if rate.trial == baseline
    }
    paired = [rate for rate in rates if rate.round in complete]
    return Verification(
        pairs=mean.count,
        launches=[launch.id for launch in journal.launches if launch.purpose == "verify" and launch.measured],
        baseline_samples_per_second=[rate.value for rate in paired if rate.trial == baseline],
        recommended_samples_per_second=[rate.value for rate in paired if rate.trial == candidate],
        ratio=mean.value,
        ci95=mean.ci95,
        agrees_with_live=None,
    )


def _verified_trial(journal: Journal) -> str | None:
    tried = {journal.trial(rate.trial) for rate in journal.rates("verify")} - {journal.baseline_id}
    return next(iter(tried), None)


def recommendation(journal: Journal, trials: Sequence[Trial]) -> Recommendation | None:
    """The cheapest configuration within 2 % of the best, or the baseline; None where the baseline was not measured.

    A change whose verification does not bear it out is not recommended.
    """
    measured = {trial.id: trial for trial in trials if trial.status == "measured"}
    baseline = journal.baseline_id
    leader = race.chosen(journal)
    if baseline not in measured or leader is None:
        return None
    verified = None if leader == baseline else race.verification(journal, leader)
    if verified is not None and verified.ci95 is not None and verified.ci95[0] <= 1:
        leader, verified = baseline, None
    versus, firmness = _gain(journal, measured[leader], verified)
    return Recommendation(
        trial=leader,
        configuration=measured[leader].configuration,
        versus_baseline=versus,
        firmness=firmness,
        frontier=frontier(list(measured.values())),
    )


def _gain(journal: Journal, trial: Trial, verified: Mean | None) -> tuple[Ratio | None, Firmness]:
    if verified is not None and verified.count >= FEWEST_PAIRS:
        return ratio_of(verified), "verified"
    if trial.id == journal.baseline_id:
        rounds = trial.versus_baseline.rounds if trial.versus_baseline is not None else 0
        return trial.versus_baseline, "measured" if rounds >= FEWEST_ROUNDS else "provisional"
    later = _later_rounds(journal, trial.id)
    if later is not None and later.count >= FEWEST_ROUNDS:
        return ratio_of(later), "measured"
    return trial.versus_baseline, "provisional"


def _later_rounds(journal: Journal, trial: str) -> Mean | None:
    """The ratio from rounds after the first three, where those three had chosen the same trial."""
    baseline = journal.baseline_id or ""
    rates = race.race_rates(journal)
    early = compare([rate for rate in rates if rate.round <= FEWEST_FOR_INTERVAL], baseline)
    if not early or max(early, key=lambda name: early[name].value) != trial:
        return None
    ratios = paired_ratios([rate for rate in rates if rate.round > FEWEST_FOR_INTERVAL], baseline).get(trial)
    return geometric_mean(ratios) if ratios else None


def frontier(trials: Sequence[Trial]) -> list[str]:
    """Trials that no other beats in both speed and memory, the smallest first."""
    known = [
        (trial.memory_bytes.pss + (trial.memory_bytes.pinned or 0), -trial.samples_per_second.median, trial.id)
        for trial in trials
        if trial.memory_bytes.pss is not None and trial.samples_per_second is not None
    ]
    undominated: list[str] = []
    fastest = 0.0
    for _, slowness, name in sorted(known):
        if -slowness > fastest:
            undominated.append(name)
            fastest = -slowness
    return undominated
