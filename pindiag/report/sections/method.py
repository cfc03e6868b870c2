"""Method: how it was measured, what it cost, and what was not measured."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from pindiag.model import Report
from pindiag.report import about, conclusions

EVERYTHING = "all figures"
"""Of a trial that was not run: one line in place of one for each."""
MOST_NAMED = 3
"""Trials that a gap names; above it their number is enough, the table shows which."""


def heading(report: Report) -> str:
    """What was run, in one line."""
    if not report.blocks:
        return f"No block was counted: {conclusions.ending(report)}"
    treatments = about.plural(len({block.trial for block in report.blocks}), "treatment")
    return f"{about.plural(len(report.blocks), 'block')} of {treatments} in {about.plural(_launched(report), 'launch')}"


def _launched(report: Report) -> int:
    return len({block.launch for block in report.blocks} | {launch.id for launch in report.launches})


def launches(report: Report) -> str:
    """How many launches of each kind there were."""
    kinds = Counter(_kind(report, number) for number in range(len(report.launches)))
    said = [words.format(about.plural(kinds[kind], "launch")) for kind, words in _LAUNCHES.items() if kinds[kind]]
    return f"{'; '.join(said)}."


_LAUNCHES = {
    "live": "{} ran live: blocks of many treatments in one process, in random order",
    "scout": "{} only read how many threads the main process of a fresh start has",
    "fresh": "{} ran fresh: one treatment each, in a process of its own",
    "verify": "{} ran fresh to verify the recommendation, in alternating order with the script as written",
}


def _kind(report: Report, index: int) -> str:
    launch = report.launches[index]
    return launch.purpose if launch.purpose in ("scout", "verify") else launch.isolation


def ran_live(report: Report) -> bool:
    """Whether any block was measured among others in one process."""
    return any(launch.isolation == "live" for launch in report.launches)


def order(report: Report) -> str:
    """How treatments took turns."""
    if not ran_live(report):
        return (
            "Every launch runs one treatment; each round runs every configuration once, the script as written twice, "
            "in random order."
        )
    return (
        "Each round runs every configuration, ceiling and tweak once and the script as written twice, in random order; "
        "the step alone has rounds of its own at the end, beside the script as written. A round is wholly live or "
        "wholly fresh."
    )


def limits(report: Report) -> list[str]:
    """What the run's surroundings and the start of workers limited, in sentences."""
    said = {fact.name: fact.value for fact in report.facts if fact.trial is None}
    found = [said.get("disturbances") if said.get("disturbed_blocks") else None, said.get("block_length")]
    return [f"{_capital(words)}." for words in found if isinstance(words, str)]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def gaps(report: Report) -> list[tuple[str, str]]:
    """Everything that was not measured: what it is, and why; gaps of one reason together."""
    by_reason: dict[str, dict[str, list[str]]] = {}
    left_out = {one.id: one.reason for one in report.trials if one.status in ("skipped", "predicted")}
    for gap in report.not_measured:
        trial, what = _what_is_missing(gap.key, report)
        if trial in left_out and gap.reason == left_out[trial]:
            what = EVERYTHING
        named = by_reason.setdefault(gap.reason, {}).setdefault(what, [])
        if what != EVERYTHING or trial not in named:
            named.append(trial)
    return [
        ("; ".join(_missing_words(what, trials) for what, trials in found.items()), reason)
        for reason, found in by_reason.items()
    ]


def _what_is_missing(key: str, report: Report) -> tuple[str, str]:
    """A key of report.json as the trial's id ("" where it is of the run) and words."""
    found = re.fullmatch(r"(trials|launches)\[(\d+)\]\.(.*)", key)
    if found is None:
        return "", _key_words(key)
    number = int(found[2])
    if found[1] == "launches":
        return f"launch {report.launches[number].id if number < len(report.launches) else number}", _key_words(found[3])
    return report.trials[number].id if number < len(report.trials) else key, _key_words(found[3])


def _key_words(key: str) -> str:
    words = key.replace("trials[*].", "").replace("ci95", "interval").replace("_", " ")
    return words.replace(".", ": ")


def _missing_words(what: str, trials: Sequence[str]) -> str:
    named = [trial for trial in trials if trial]
    if not named:
        return what
    return f"{what} ({', '.join(named)})" if len(named) <= MOST_NAMED else f"{what} ({len(named)} times)"
