"""What to recommend, how firmly, and what verification says about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pindiag import race
from pindiag.analysis.trials import ratio_of
from pindiag.gate import unsafe
from pindiag.journal import Journal
from pindiag.model import NoiseFloor, Ratio, Recommendation, Trial, Verification
from pindiag.stats import FEWEST_FOR_INTERVAL, Mean, compare, differ, geometric_mean, paired_ratios

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
    rates = journal.verify_rates()
    ratios = paired_ratios(rates, baseline).get(candidate)
    if not ratios:
        return None
    mean, live = geometric_mean(ratios), race.live_ratio(journal, candidate)
    alike = race.verification(journal, candidate, steady=True)
    complete = {rate.round for rate in rates if rate.trial == candidate} & {
        rate.round for rate in rates if rate.trial == baseline
    }
    paired = [rate for rate in rates if rate.round in complete]
    return Verification(
        trial=candidate,
        pairs=mean.count,
        launches=[launch.id for launch in journal.launches if launch.purpose == "verify" and launch.measured],
        baseline_samples_per_second=[rate.value for rate in paired if rate.trial == baseline],
        recommended_samples_per_second=[rate.value for rate in paired if rate.trial == candidate],
        ratio=mean.value,
        ci95=mean.ci95,
        agrees_with_live=_agrees(live, alike),
        live_ratio=None if live is None else live.value,
        live_ci95=None if live is None else live.ci95,
        epochs=journal.verified_epochs,
        steady_ratio=None if alike is None else alike.value,
        steady_ci95=None if alike is None else alike.ci95,
    )


def _agrees(live: Mean | None, fresh: Mean | None) -> bool | None:
    """Whether the two differ by no more than both of their intervals explain; None where one has none."""
    apart = None if live is None or fresh is None else differ(live, fresh)
    return None if apart is None else not apart


def _verified_trial(journal: Journal) -> str | None:
    """The leader where it ran; one that was found unsafe meanwhile is none, whatever its launches gave."""
    ran = [journal.trial(rate.trial) for rate in journal.rates("verify")]
    tried = [name for name in ran if name != journal.baseline_id and unsafe(journal, name) is None]
    leaders = [name for name in (race.leader(journal), race.chosen(journal)) if name in tried]
    return next(iter([*leaders, *tried]), None)


def recommendation(journal: Journal, trials: Sequence[Trial]) -> Recommendation | None:
    """The cheapest configuration within 2 % of the best, or the baseline; None where the baseline was not measured.

    A change whose verification does not bear it out is not recommended. Beside it, the tweak that comes before it.
    """
    measured = {trial.id: trial for trial in trials if trial.status == "measured"}
    baseline = journal.baseline_id
    leader = race.recommended(journal)
    if baseline not in measured or leader is None:
        return None
    verified = None if leader == baseline else race.verification(journal, leader)
    versus, firmness = _gain(journal, measured[leader], verified)
    return Recommendation(
        trial=leader,
        configuration=measured[leader].configuration,
        versus_baseline=versus,
        firmness=firmness,
        frontier=frontier([trial for trial in measured.values() if _competes(journal, trial.id)]),
        tweak=next((name for name in [race.comes_first(journal)] if name != leader and name in measured), None),
    )


def _gain(journal: Journal, trial: Trial, verified: Mean | None) -> tuple[Ratio | None, Firmness]:
    if verified is not None and verified.count >= FEWEST_PAIRS:
        return ratio_of(verified), "verified"
    if _distrusted(journal, trial, verified):
        return trial.versus_baseline if verified is None else ratio_of(verified), "provisional"
    if trial.id == journal.baseline_id:
        return trial.versus_baseline, "measured" if _rounds(journal, trial) >= FEWEST_ROUNDS else "provisional"
    later = _later_rounds(journal, trial.id)
    if later is not None and later.count >= FEWEST_ROUNDS:
        return ratio_of(later), "measured"
    return trial.versus_baseline, "provisional"


def _distrusted(journal: Journal, trial: Trial, verified: Mean | None) -> bool:
    """Whether what the race says of a trial is live, and the baseline drifted there or fresh launches differ."""
    if trial.isolation == "fresh":
        return False
    live = race.live_ratio(journal, trial.id)
    alike = None if verified is None else race.verification(journal, trial.id, steady=True)
    return race.drifts(journal) or (alike is not None and live is not None and _apart(live, alike))


def _apart(one: Mean, other: Mean) -> bool:
    """Whether two intervals have nothing in common; a value without one stands for itself."""
    (low, high), (other_low, other_high) = (mean.ci95 or (mean.value, mean.value) for mean in (one, other))
    return high < other_low or other_high < low


def _rounds(journal: Journal, baseline: Trial) -> int:
    """Rounds behind "keep what you have": those in which something was compared with it, or else its own."""
    compared = [mean.count for mean in race.standings(journal).values()]
    own = 0 if baseline.versus_baseline is None else baseline.versus_baseline.rounds
    return max(compared, default=own)


def _later_rounds(journal: Journal, trial: str) -> Mean | None:
    """The ratio from rounds after its first three, where those three had chosen the same trial."""
    baseline = journal.baseline_id or ""
    rates = [rate for rate in race.race_rates(journal) if _competes(journal, rate.trial)]
    rounds = sorted({rate.round for rate in rates if rate.trial == trial})
    choosing, judging = rounds[:FEWEST_FOR_INTERVAL], rounds[FEWEST_FOR_INTERVAL:]
    early = compare([rate for rate in rates if rate.round in choosing], baseline)
    if not early or max(early, key=lambda name: early[name].value) != trial:
        return None
    ratios = paired_ratios([rate for rate in rates if rate.round in judging], baseline).get(trial)
    return geometric_mean(ratios) if ratios else None


def _competes(journal: Journal, trial: str) -> bool:
    made = journal.treatments.get(trial)
    return made is not None and made.competes


def frontier(trials: Sequence[Trial]) -> list[str]:
    """Trials that no other beats in both speed and memory, the smallest first."""
    known = [
        (used, -trial.samples_per_second.median, trial.id)
        for trial in trials
        if (used := trial.memory_bytes.total) is not None and trial.samples_per_second is not None
    ]
    undominated: list[str] = []
    fastest = 0.0
    for _, slowness, name in sorted(known):
        if -slowness > fastest:
            undominated.append(name)
            fastest = -slowness
    return undominated
