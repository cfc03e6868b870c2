"""Every patch in the reports of recordings applies, parses, keeps all comments, and is not proposed a second time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import fixes as benchmark
import pytest
from recordings import Recording, recordings

from pindiag.api import outcome
from pindiag.fixes import Places, relative
from pindiag.fixes.carried_out import by_file, carried_out, moved
from pindiag.model import Fix, Report
from pindiag.store import RunDirectory
from tests.recorded_runs import label, report_of, run_of


def proposed(report: Report) -> Iterator[tuple[str, Fix]]:
    """Fixes with a patch, each with the cause that it is for."""
    yield from ((each.cause, fix) for each in report.findings for fix in each.fixes if fix.patch)
    if report.recommendation and report.recommendation.fix and report.recommendation.fix.patch:
        yield "recommended", report.recommendation.fix


def places_of(run: RunDirectory, report: Report) -> Places:
    return outcome._fixes(report, run.records(), outcome.read_sources(run), outcome.root(run.read_spec()))


def changed(places: Places, patch: str) -> dict[str, str]:
    """The texts of the files that a patch edits, as they are then."""
    names = {relative(path, places.root).lstrip("/"): path for path in places.sources}
    return {names[name]: carried_out(hunks, places.sources[names[name]]) for name, hunks in by_file(patch).items()}


def after(places: Places, texts: dict[str, str]) -> Places:
    """The same places in the files as they are then."""

    def at(place: str) -> str:
        path, _, line = place.rpartition(":")
        return f"{path}:{moved(places.sources[path], texts[path], int(line))}" if path in texts else place

    return dataclasses.replace(
        places,
        loader=places.loader and at(places.loader),
        transfers=[at(place) for place in places.transfers],
        sources={**places.sources, **texts},
    )


@pytest.mark.parametrize("recording", recordings(), ids=label)
def test_patches_of_a_recording_hold(recording: Recording) -> None:
    report = report_of(recording)
    places = places_of(run_of(recording), report)
    shown = list(proposed(report))
    for cause, fix in shown:
        texts = changed(places, fix.patch or "")
        assert texts
        assert all(benchmark.is_sound(places.sources[path], text) for path, text in texts.items()), fix.patch
        again = after(places, texts).fix_for(fix, guard=cause == "pin_without_accelerator")
        assert again.patch is None, again.patch
    assert shown or not editable(report), "a change is recommended, and no patch shows it"


def editable(report: Report) -> bool:
    """Whether a change is recommended whose arguments stand as they are in a call that may be edited."""
    fix = report.recommendation and report.recommendation.fix
    return bool(fix and set(fix.changes) - set(fix.by_hand)) and fix.safety.status != "failed"
