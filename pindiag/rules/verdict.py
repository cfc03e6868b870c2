"""The sentence on top: what is slow, what to change, what it brought, how sure (REPORT.md section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pindiag import figures
from pindiag.model import Effect, Finding, Fix, Verdict
from pindiag.rules import ceilings, tweaks
from pindiag.rules.differences import changes
from pindiag.rules.fixed import epoch_in_words, trial_of
from pindiag.rules.inputs import Facts, Inputs, Missing
from pindiag.rules.ranking import is_cause, is_fact, primary
from pindiag.rules.registry import RULES
from pindiag.rules.remedies import ROUNDS_TO_CLAIM, is_unsafe, leading_tweak, recommended, recommended_trial

LONGEST_ERROR = 16
"""Words of an exception in the headline, which holds at most 24."""
LIMITS = {rule.name: rule.limit for rule in RULES}
BEYOND = 1.05
"""What ran faster than a ceiling by more than this shows that the ceiling was disturbed."""

Said = tuple[str, str]
"""Headline and lead."""


def verdict(findings: Sequence[Finding], inputs: Inputs) -> Verdict:
    """The verdict on a run, from findings as `judge` orders them."""
    first = primary(findings)
    facts = Facts(inputs)
    headline, lead = _say(first, findings, facts)
    nothing_stands_out = None if _rate(facts) is None else "no_difference"
    return Verdict(
        headline=headline,
        lead=_with_disagreement(lead, facts),
        possible=ceilings.in_words(facts),
        primary_cause=first.cause if first else nothing_stands_out,
        confidence="none" if inputs.target.status == "interrupted" else _confidence(first),
    )


def _confidence(first: Finding | None) -> Literal["confirmed", "suspected", "none"]:
    if first is None:
        return "none"
    if first.status == "confirmed":
        return "confirmed"
    return "suspected" if first.status in ("suspected", "not_settled") and first.cause != "no_difference" else "none"


def _say(first: Finding | None, findings: Sequence[Finding], facts: Facts) -> Said:
    if facts.inputs.target.status == "failed":
        return _failed(first, facts)
    if facts.inputs.target.status == "interrupted":
        return _interrupted(facts)
    confirmed = [each for each in findings if each.status == "confirmed" and is_cause(each.cause)]
    confirmed = [each for each in confirmed if each.consequence_of is None]
    if _rate(facts) is None:
        return "Nothing could be judged: no step of the script was measured.", ""
    if first is None:
        return f"The script trains at {_now(facts)}.", "Too little else was measured to judge it."
    unsafe = next((fix for fix in first.fixes if is_unsafe(fix)), None)
    if unsafe and unsafe.effect and not recommended(facts):
        return _unsafe(unsafe, unsafe.effect)
    if len(confirmed) > 1:
        return _several(confirmed, facts)
    if confirmed:
        return _confirmed(first, facts)
    if first.cause == "pin_without_accelerator":
        return _pinned_for_nothing(findings, facts)
    return _without_a_confirmed_cause(first, facts)


def _without_a_confirmed_cause(first: Finding, facts: Facts) -> Said:
    gain = recommended(facts)
    if gain and gain.effect:
        return _gain_without_a_cause(gain, gain.effect, first, facts)
    if first.cause == "worker_crash":
        return (
            "A loader worker died while it was measured; whether the script does so alone is open.",
            first.explanation,
        )
    if first.status in ("suspected", "not_settled") and is_cause(first.cause):
        return f"Probably {_small(LIMITS[first.cause])} is the limit; not shown yet.", first.explanation
    if is_fact(first.cause) and first.status == "confirmed":
        return f"{first.title}.", first.explanation
    return _no_difference(first, facts)


# ----------------------------------------------------------------------------------------------------- one a case


def _confirmed(first: Finding, facts: Facts) -> Said:
    headline = f"{LIMITS[first.cause]} is the limit: {_at_the_pin_thread(first, facts) or _now(facts)}."
    return headline, _what_to_do([first], facts)


def _several(confirmed: Sequence[Finding], facts: Facts) -> Said:
    one, two = confirmed[:2]
    unpinned = any(_about_pinned_ones(each, facts) for each in (one, two))
    headline = (
        f"{LIMITS[one.cause]} and {_small(LIMITS[two.cause])} hold training back: "
        f"{'as written, unpinned, ' if unpinned else ''}{_now(facts)}."
    )
    return headline, _what_to_do(confirmed, facts)


def _what_to_do(confirmed: Sequence[Finding], facts: Facts) -> str:
    """The change that comes first, and what mending each cause otherwise brings."""
    own = [fix for fix in confirmed[0].fixes if not is_unsafe(fix)]
    first = recommended(facts) or next(iter(_shown(own) or own), None)
    if first is None:
        return ""
    alone = [
        (each, fix)
        for each in confirmed
        for fix in each.fixes[-1:]
        if not is_unsafe(fix) and fix.changes != first.changes
    ]
    said = [_alone(each, fix, facts, only=len(confirmed) == 1) for each, fix in alone]
    return " ".join([_change(first, facts), *said, *_together([first, *(fix for _, fix in alone)], facts)])


def _alone(cause: Finding, fix: Fix, facts: Facts, *, only: bool) -> str:
    limit, effect = _small(LIMITS[cause.cause]), fix.effect
    if effect is None or (only and effect.kind == "predicted"):
        return _change(fix, facts)
    if effect.kind == "predicted":
        return f"Mending {limit} alone would bring at most {figures.ratio(effect.ratio)}."
    return f"Mending {limit} alone brings {figures.ratio(effect.ratio)} ({_small(_what(fix))})."


def _together(said: Sequence[Fix], facts: Facts) -> list[str]:
    """What arguments and a line of code give alone and both together, as far as it was not said."""
    ahead, best = leading_tweak(facts), recommended_trial(facts)
    tweak = ahead.tweak if ahead else next((found for fix in said if (found := tweaks.of(fix))), None)
    both = tweaks.combined(tweak, facts) if tweak else None
    over = both.over if both else best if ahead else None
    if tweak is None or over is None:
        return []
    own = facts.tweaked(tweak) if both else None
    tried = [
        (f"`{figures.arguments(changes(facts.configuration, over.configuration))}` alone", "brings", over),
        ("the line of code alone", "brings", own and own.trial),
        ("both together", "bring", both and both.trial),
    ]
    known = [trial_of(fix, facts) for fix in said]
    left = [(who, verb, gain) for who, verb, one in tried if one and one not in known and (gain := facts.gain(one))]
    told = ", ".join(
        f"{who}{'' if place else f' {verb}'} {figures.ratio(gain.ratio)}"
        for place, (who, verb, gain) in enumerate(left)
    )
    ran = both or (ahead and ahead.configuration == over.configuration)
    apart = "" if ran or not tweaks.applies(tweak, over.configuration) else "both together were not tried"
    sentence = "; ".join(part for part in (told, apart) if part)
    return [f"{_capital(sentence)}."] if sentence else []


def _about_pinned_ones(finding: Finding, facts: Facts) -> bool:
    """Whether it is about the pin thread of configurations that pin, while the script as written does not."""
    return finding.cause == "pin_thread_bound" and not facts.configuration.pin_memory


def _at_the_pin_thread(finding: Finding, facts: Facts) -> str | None:
    """What the pin thread lets through, where the script as written has none."""
    now, possible, drained = _rate(facts), _possible(facts), ceilings.pin_thread_cost(facts)
    through = drained.trial.samples_per_second if drained else None
    if not _about_pinned_ones(finding, facts) or now is None or possible is None or through is None:
        return None
    return (
        f"with workers at most {figures.rate(through.median)} of a possible {figures.significant(possible)}; "
        f"as written, unpinned, {figures.significant(now)}"
    )


def _gain_without_a_cause(fix: Fix, effect: Effect, first: Finding, facts: Facts) -> Said:
    headline = f"{_to_do(fix, facts)}: {figures.ratio(effect.ratio)} faster."
    open_cause = first.status in ("suspected", "not_settled") and is_cause(first.cause)
    why = f"Why: probably {_small(LIMITS[first.cause])}; not shown yet." if open_cause else "No rule explains why."
    epoch = _capital(epoch_in_words(fix, facts).removesuffix(", "))
    sure, took = f"{_capital(_how_sure(fix, effect, facts))}.", [f"{epoch}."] if epoch else []
    return headline, " ".join([sure, *took, why, *_together([fix], facts)])


def _pinned_for_nothing(findings: Sequence[Finding], facts: Facts) -> Said:
    others = [each for each in findings if each.cause != "pin_without_accelerator"]
    rest = primary(others)
    headline, lead = _without_a_confirmed_cause(rest, facts) if rest else ("not judged.", "")
    fix = next((fix for each in findings if each not in others for fix in each.fixes if fix.written), None)
    what = _set(fix, facts) if fix else f"Remove `pin_memory=True`{_at(_loader(facts))}, or guard it"
    nothing = "No accelerator here, so pinning does nothing"
    if recommended(facts):
        return headline, f"{lead} {nothing}: {_small(what)}."
    return f"{nothing}.", f"{what}. The loader: {headline} {lead}".strip()


def _no_difference(first: Finding, facts: Facts) -> Said:
    tried = len(facts.measured())
    if not tried:
        return f"The script trains at {_now(facts)}.", f"{first.explanation} {facts.why_alone}"
    if (
        not _told_apart(facts)
        or first.status == "not_settled"
        or (first.status != "confirmed" and first.cause == "no_difference")
    ):
        return "No configuration is shown to be faster than what you have.", first.explanation
    floor = facts.inputs.noise_floor.ratio
    noise = "" if floor is None else f" ({figures.floor(floor)})"
    reached = _reached(facts)
    return (
        "Keep what you have.",
        f"{_none_of(tried)} from it beyond the noise{noise}. {reached or first.explanation}",
    )


def _told_apart(facts: Facts) -> bool:
    """Whether every configuration ran often enough for an interval."""
    gains = [facts.gain(trial) for trial in facts.measured()]
    return all(gain is None or gain.interval is not None for gain in gains)


def _none_of(tried: int) -> str:
    if tried == 1:
        return "The other configuration that was tried does not differ"
    return f"None of the {tried} other configurations that were tried differs"


def _unsafe(fix: Fix, effect: Effect) -> Said:
    gain = figures.ratio_with_interval(effect.ratio, effect.ci95)
    return f"`{_arguments(fix)}` was {gain} faster and is not recommended.", fix.safety.reason


def _failed(first: Finding | None, facts: Facts) -> Said:
    target = facts.inputs.target
    lines = (target.error or "").strip().splitlines()
    error = lines[-1] if lines else target.exit
    step = "" if target.error_step is None else f" at step {figures.count(target.error_step)}"
    rate = _rate(facts)
    until = f"Measured until then: {figures.rate(rate)}. " if rate is not None else ""
    if first is not None and first.cause == "worker_crash":
        said = facts.text("worker_death") or error
        told = " ".join([first.explanation, *(fix.summary for fix in first.fixes)])
        return f"A loader worker died{step}: {_short(said)}.", f"{told} {until}No verdict on speed."
    return f"Your script stopped{step}: {_short(error)}.", f"{until}No verdict on speed."


def _interrupted(facts: Facts) -> Said:
    rounds = max((block.round for block in facts.inputs.blocks), default=0)
    headline = f"Interrupted after {rounds} round{'' if rounds == 1 else 's'}."
    ahead = leading_tweak(facts)
    raced = [ahead] if ahead else facts.measured()
    leader = max(((gain.ratio, trial.id, gain) for trial in raced if (gain := facts.gain(trial))), default=None)
    if leader is None or leader[0] <= 1:
        return headline, "No configuration leads yet; not a verdict."
    trial, gain = facts.trial(leader[1]), leader[2]
    shown = figures.ratio_with_interval(gain.ratio, gain.interval)
    return headline, f"So far {trial.id if trial else leader[1]} leads by {shown}; not a verdict."


# --------------------------------------------------------------------------------------------------------- words


def _change(fix: Fix, facts: Facts) -> str:
    effect = fix.effect
    if effect is None:
        return fix.summary
    if effect.kind == "predicted":
        return f"{fix.summary} At most {figures.ratio(effect.ratio)} faster; not tried."
    how = f"{_interval(effect)}{epoch_in_words(fix, facts)}{_how_firm(fix, effect, facts)}"
    return f"{_to_do(fix, facts)}: {figures.ratio(effect.ratio)} faster ({how})."


def _to_do(fix: Fix, facts: Facts) -> str:
    return fix.summary.rstrip(".") if tweaks.of(fix) else _set(fix, facts)


def _what(fix: Fix) -> str:
    return fix.summary.rstrip(".") if tweaks.of(fix) else f"`{_arguments(fix)}`"


def _with_disagreement(lead: str, facts: Facts) -> str:
    """The lead, with what live runs had said where fresh ones do not bear it out: loudly where they exclude it."""
    fresh = facts.inputs.verification
    if fresh is None or fresh.agrees_with_live is not False or fresh.live_ratio is None:
        return lead
    live = figures.ratio_with_interval(fresh.live_ratio, fresh.live_ci95)
    if fresh.ci95 and fresh.live_ci95 and not _overlap(fresh.ci95, fresh.live_ci95):
        apart = (
            f"Live and fresh runs disagree: live {live}, fresh {figures.ratio_with_interval(fresh.ratio, fresh.ci95)}"
        )
        return f"{apart}; the fresh result decides. {lead}".strip()
    return f"{lead} Live it was {live}, which the fresh interval does not hold.".strip()


def _overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _how_sure(fix: Fix, effect: Effect, facts: Facts) -> str:
    return f"{_interval(effect)}{_how_firm(fix, effect, facts)}"


def _interval(effect: Effect) -> str:
    return f"95 % interval {figures.interval(effect.ci95)}, " if effect.ci95 else "no interval, "


def _how_firm(fix: Fix, effect: Effect, facts: Facts) -> str:
    verification = facts.inputs.verification
    if effect.kind == "verified" and verification:
        over = " over whole epochs" if verification.epochs and verification.live_ratio is None else ""
        return f"verified by {verification.pairs} pairs of fresh launches{over}"
    if effect.kind != "provisional":
        return effect.kind
    trial = trial_of(fix, facts)
    rounds = trial.versus_baseline.rounds if trial and trial.versus_baseline else 0
    asks = f"; pindiag asks for {ROUNDS_TO_CLAIM}" if rounds < ROUNDS_TO_CLAIM else ", the rounds that chose it"
    return f"provisional: {rounds} round{'' if rounds == 1 else 's'}{asks}"


def _shown(fixes: Sequence[Fix]) -> list[Fix]:
    return [fix for fix in fixes if not is_unsafe(fix) and (fix.effect is None or fix.effect.kind != "predicted")]


def _rate(facts: Facts) -> float | None:
    try:
        estimate = facts.baseline.samples_per_second
    except Missing:
        return None
    return estimate.median if estimate else None


def _now(facts: Facts) -> str:
    now, possible = _rate(facts), _possible(facts)
    if now is None:
        return "throughput not measured"
    return (
        figures.rate(now) if possible is None else f"{figures.rate(now)} of a possible {figures.significant(possible)}"
    )


def _possible(facts: Facts) -> float | None:
    """The ceiling of the script's own computing; None where something was shown to lift it, or ran well above it."""
    ceiling = facts.trial(facts.inputs.ceilings.compute_only or "")
    above = facts.gain(ceiling) if ceiling else None
    if ceiling is None or ceiling.samples_per_second is None or above is None:
        return None
    gains = [gain for trial in [*facts.tweaks(), *facts.measured()] if (gain := facts.gain(trial))]
    reach = above.interval[1] if above.interval else above.ratio
    lifted = any(gain.significant and gain.ratio > reach for gain in gains)
    reached = [trial.samples_per_second.median for trial in facts.measured() if trial.samples_per_second]
    most = ceiling.samples_per_second.median
    return None if lifted or max(reached, default=0.0) > BEYOND * most else most


def _reached(facts: Facts) -> str | None:
    now, possible = _rate(facts), _possible(facts)
    if not now or not possible:
        return None
    return f"Training reaches {figures.share(min(now / possible, 1.0))} of the ceiling of its own computing."


def _set(fix: Fix, facts: Facts) -> str:
    """What to set, and where: at the loader, or where a framework is told of it."""
    return f"Set `{_arguments(fix)}`{_at(fix.location if fix.written else _loader(facts))}"


def _at(place: str | None) -> str:
    return f" at {place}" if place else ""


def _loader(facts: Facts) -> str | None:
    return facts.inputs.loader.chosen if facts.inputs.loader else None


def _arguments(fix: Fix) -> str:
    return fix.written or figures.arguments(fix.changes)


def _small(text: str) -> str:
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _short(text: str) -> str:
    words = text.rstrip(".").split()
    return " ".join(words) if len(words) <= LONGEST_ERROR else f"{' '.join(words[:LONGEST_ERROR])} …"
