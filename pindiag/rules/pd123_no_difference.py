"""PD123 no_difference."""

from __future__ import annotations

from collections.abc import Mapping

from pindiag import figures
from pindiag.model import Evidence
from pindiag.rules.inputs import Facts, Gain
from pindiag.rules.rule import Options, Statement, require, rule


@rule(
    "PD123",
    "no_difference",
    title="No other configuration is worth a change",
    limit="None of the arguments",
    of_fact=True,
)
def no_difference(facts: Facts, _options: Options) -> Statement:
    """Every configuration that was tried trains as fast as the script as written, within 5 %.

    What it means:
        The arguments that were tried do not matter here. Keep what you have.

    How it is decided:
        Confirmed when the intervals of all measured configurations exclude a gain of 5 %; ruled out when one was
        shown to be faster; not settled while intervals are too wide. Says nothing while a cause is confirmed or
        suspected.

    Example:
        A loader that keeps up with its model.

    Fix:
        None.

    When to ignore:
        When the configurations that you had in mind were not among those tried (`--grid`).

    References:
        None.
    """
    baseline = facts.baseline
    tried = facts.measured()
    require(bool(tried), facts.why_alone)
    gains = {trial.id: gain for trial in tried if (gain := facts.gain(trial))}
    require(bool(gains), "No configuration was measured beside the script as written.")
    faster = [name for name, gain in gains.items() if gain.significant]
    settled = all(gain.excluded for gain in gains.values())
    room = "" if faster or settled else " The intervals are too wide to exclude a gain of 5 %."
    return Statement(
        status="ruled_out" if faster else "confirmed" if settled else "not_settled",
        explanation=f"{_fastest(gains)} as written.{room}",
        evidence=[
            Evidence(
                name=f"{name} over {baseline.id}",
                value=gain.ratio,
                unit="×",
                source=f"{gain.rounds} rounds"
                if gain.interval is None
                else f"interval {figures.interval(gain.interval)}",
            )
            for name, gain in gains.items()
        ],
    )


def _fastest(gains: Mapping[str, Gain]) -> str:
    best = max(gains, key=lambda name: gains[name].ratio)
    gain = gains[best]
    shown = "" if gain.interval is None else f" ({figures.interval(gain.interval)})"
    among = "The other configuration" if len(gains) == 1 else f"Of the {len(gains)} other configurations the fastest"
    return f"{among}, {best}, ran {figures.ratio(gain.ratio)}{shown} as fast"
