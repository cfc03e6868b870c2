"""Why: each experiment as a question, what was done, what it gave, and its answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from pindiag import figures
from pindiag.model import Ratio, Report, Trial
from pindiag.report import about, names
from pindiag.report.about import WORTH
from pindiag.report.ceilings import AS_SLOW, Ceiling, Ceilings, Stage
from pindiag.report.charts import pin_thread
from pindiag.report.charts._svg import Chart
from pindiag.report.rows import median_rate
from pindiag.report.sections import beyond
from pindiag.report.text import Linker, record


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A row of the table."""

    question: str
    what: str
    measured: Markup
    answer: str
    is_limit: bool = False
    """It found what holds training back."""


def experiments(report: Report, found: Ceilings | None, links: Linker) -> list[Experiment]:
    """What ceilings, tweaks and the recommended configuration answer; empty where none was measured."""
    baseline = about.trial(report, report.baseline)
    if baseline is None:
        return []
    asked = [*_of_ceilings(report, found, baseline, links), *_of_tweaks(report, links)]
    return [*asked, *_of_the_recommendation(report, links)] if asked else []


def _of_ceilings(report: Report, found: Ceilings | None, baseline: Trial, links: Linker) -> Iterator[Experiment]:
    if found is None:
        return
    slow = found.slow
    gpu = about.has_gpu(report) is not False
    for row in found.of("step"):
        question = "Could the GPU go faster?" if gpu else "Could the step go faster?"
        what = "Replay batches that are already there"
        yield Experiment(question, what, _against(row, links), _gains(row), is_limit=_gains(row) == "No")
    copies = found.of("copy")
    if copies:
        what = f"Replay host batches: {'; '.join(row.label.partition(', ')[2] for row in copies)}"
        is_limit = "copy" in slow
        yield Experiment("Are copies the limit?", what, _rates(copies, links), _copies(found, is_limit), is_limit)
    alone = found.of("loader")
    if alone:
        what = f"Drain the loader{', no pin thread' if gpu else ''}: {_workers(alone)}"
        is_limit = "loader" in slow
        yield Experiment("Is it the loader alone?", what, _rates(alone, links), "Yes" if is_limit else "No", is_limit)
    through = found.of("pin_thread")
    if through:
        what = f"Drain it through the pin thread: {_workers(through)}"
        is_limit = "pin_thread" in slow
        answer = "Yes" if is_limit else _would_be(through, baseline)
        yield Experiment("Is it the pin thread?", what, _rates(through, links), answer, is_limit)


def _would_be(through: Sequence[Ceiling], baseline: Trial) -> str:
    """As written there may be no pin thread, and with pinning there would be a slow one."""
    slow = any(row.ratio is not None and row.ratio <= AS_SLOW for row in through)
    return "It would be, once pinned" if slow and not baseline.configuration.pin_memory else "No"


def _copies(found: Ceilings, is_limit: bool) -> str:
    """Where pageable batches are slow and pinned ones are not, pinning would answer it."""
    pinned, pageable = (max(_medians(found.of("copy", pinned=kind)), default=None) for kind in (True, False))
    once_pinned = pinned is not None and pageable is not None and pinned >= AS_SLOW * pageable
    if is_limit:
        return "Yes, until pinned" if once_pinned else "Yes"
    return "Not once pinned" if once_pinned else "No"


def _medians(rows: Sequence[Ceiling]) -> list[float]:
    return [row.rate.median for row in rows if row.rate]


_TWEAKS = {
    "intraop_threads": (
        "Does the main thread lack its threads?",
        "Give it back, after the first batch, the number that it had",
    ),
    "lazy_sync": ("Do waits for the device in each step hold it back?", "Let these calls give what they gave before"),
    "worker_threads": (
        "Do native threads in the workers take CPUs from each other?",
        "Give the native libraries of each worker one thread",
    ),
    "fewer_intraop_threads": (
        "Do the threads of the main process and the workers take CPUs from each other?",
        "Let the main thread compute with half its threads",
    ),
    "worker_affinity": ("Are the workers bound to too few CPUs?", "Let them run on all CPUs that the script was given"),
}


def _of_tweaks(report: Report, links: Linker) -> Iterator[Experiment]:
    for trial in report.trials:
        if trial.tweak is None or trial.versus_baseline is None:
            continue
        question, what = _TWEAKS[trial.tweak]
        own = beyond.untweaked(report, trial)
        measured = _ratio(trial, links) + " as written"
        if own is not None and own.id != report.baseline:
            what = f"{what}, with {names.configuration(own.configuration)}"
            measured += _over_own(trial, own, links)
        finding = names.finding_of(report, trial.tweak)
        answer = (finding and _BY_STATUS.get(finding.status)) or _answer(trial.versus_baseline)
        yield Experiment(question, what, measured, answer, is_limit=answer == "Yes")


_BY_STATUS: Mapping[str, str] = {"confirmed": "Yes", "ruled_out": "No", "not_settled": "Not settled"}


def _over_own(trial: Trial, own: Trial, links: Linker) -> Markup:
    ratio = beyond.over_own(trial, own)
    if ratio is None:
        return Markup("")
    return Markup(", {} the same without it").format(record(figures.ratio(ratio), trial.id, links.blocks(trial.id)))


def _of_the_recommendation(report: Report, links: Linker) -> Iterator[Experiment]:
    recommended = report.recommendation
    chosen = about.trial(report, recommended.trial) if recommended else None
    if chosen is None or chosen.id == report.baseline or chosen.versus_baseline is None:
        return
    what = f"Train with {names.configuration(chosen.configuration)}"
    yield Experiment("And with the recommended settings?", what, _ratio(chosen, links), "Faster", is_limit=True)


def _gains(row: Ceiling) -> str:
    return _answer(row.trial.versus_baseline) if row.trial and row.trial.versus_baseline else "Not settled"


def _answer(ratio: Ratio) -> str:
    """Whether taking something away brings more than 5 %."""
    if ratio.ci95 is None:
        return "Not settled: too few rounds"
    if ratio.ci95[0] > 1 and ratio.ratio >= WORTH:
        return "Yes"
    return "No" if ratio.ci95[1] < WORTH else "Not settled"


def _workers(rows: Sequence[Ceiling]) -> str:
    """How many workers fetched in each row: no, 4 and 8 workers."""
    counts = [(row.trial.configuration.num_workers, row) for row in rows if row.trial]
    words = [f"{count or 'no'}{' (pinning)' if row.pinned and not count else ''}" for count, row in counts]
    return f"{names.listing(words)} worker{'s' * (len(words) > 1 or counts[0][0] != 1)}"


def _against(row: Ceiling, links: Linker) -> Markup:
    """A rate, and what it is of the loop as written."""
    measured = _rate(row, links) + " samples/s"
    if row.trial is None or row.trial.versus_baseline is None:
        return measured
    return Markup("{}, {} as written").format(measured, _ratio(row.trial, links))


def _rates(rows: Sequence[Ceiling], links: Linker) -> Markup:
    return Markup(", ").join(_rate(row, links) for row in rows) + " samples/s"


def _rate(row: Ceiling, links: Linker) -> Markup:
    if row.trial is None or row.rate is None:
        return Markup("")
    return record(figures.significant(row.rate.median), row.trial.id, links.blocks(row.trial.id))


def _ratio(trial: Trial, links: Linker) -> Markup:
    gain = trial.versus_baseline
    if gain is None:
        return Markup("")
    return record(figures.ratio_with_interval(gain.ratio, gain.ci95), trial.id, links.blocks(trial.id))


# --------------------------------------------------------------------------------------------------- by workers


def workers_chart(report: Report, found: Ceilings | None) -> Chart | None:
    """What the loader alone reaches with more workers, with the pin thread and without, beside training.

    None where the verdict does not speak of the pin thread, or too few numbers of workers were drained.
    """
    if found is None or not any(row.marked for row in found.of("pin_thread")):
        return None
    lines = [
        _line(found, "loader", "Loader alone, no pin thread", pinned=False),
        _line(found, "pin_thread", "Loader alone, pin thread", pinned=True),
    ]
    if min(len(line.points) for line in lines) < pin_thread.FEWEST:
        return None
    training = pin_thread.Line("Training, pinned", "ink", _training(report))
    title = _title(lines[1], training)
    caption = "Median of the blocks; lines: 95 % intervals."
    return Chart(pin_thread.chart([*lines, training], title), title, caption)


def _line(found: Ceilings, stage: Stage, label: str, *, pinned: bool) -> pin_thread.Line:
    rows = found.of(stage, pinned=pinned)
    points = {row.trial.configuration.num_workers: row.trial for row in rows if row.trial and row.rate}
    return pin_thread.Line(label, "accent" if any(row.marked for row in rows) else "grey", points)


def _training(report: Report) -> dict[int, Trial]:
    """Pinned configurations, the fastest with each number of workers."""
    best: dict[int, Trial] = {}
    for trial in report.trials:
        own = trial.configuration
        if not about.competes(report, trial) or not own.pin_memory or trial.samples_per_second is None:
            continue
        known = best.get(own.num_workers)
        if known is None or median_rate(trial) > median_rate(known):
            best[own.num_workers] = trial
    return best


def _title(through: pin_thread.Line, training: pin_thread.Line) -> str:
    """Whether training follows the pin thread, wherever both were measured."""
    both = [workers for workers in through.rates if workers in training.rates]
    follows = [through.rates[workers].median <= AS_SLOW * training.rates[workers].median for workers in both if workers]
    if follows and all(follows):
        return "Training sits on the pin thread's ceiling, however many workers feed it"
    return "Training stays below what the loader gives through its pin thread"
