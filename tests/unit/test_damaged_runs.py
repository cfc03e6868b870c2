"""A report is made of whatever is left of a run, and whatever it lacks has a reason."""

from __future__ import annotations

import typing
from dataclasses import dataclass

import msgspec
import pytest
import synthetic_run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pindiag.analysis import analyse
from pindiag.api import outcome
from pindiag.model import Analysis, AnyRecord, Process, Sample
from pindiag.report import render_markdown
from pindiag.store import RunDirectory, read_trace

from .analysis.honest import assert_honest


class Damaged(RunDirectory):
    """A run directory of whose records some are lost, and fields of others null."""

    left: list[AnyRecord]

    def records(self) -> list[AnyRecord]:
        return self.left


@dataclass(frozen=True)
class Damage:
    """What happened to a run.

    Args:
        cut: the part of the records after which the run died.
        kinds: of records that are lost altogether.
        single: numbers of records that are lost.
        nulled: pairs of a struct and its field, null from one on in every so many.
        every: see nulled.
    """

    cut: float
    kinds: frozenset[str]
    single: frozenset[int]
    nulled: frozenset[tuple[str, str]]
    every: int

    def done_to(self, records: list[AnyRecord]) -> list[AnyRecord]:
        kept = enumerate(records[: round(self.cut * len(records))])
        return [
            self._null(record, number)
            for number, record in kept
            if number not in self.single and type(record).__name__ not in self.kinds
        ]

    def _null(self, record, number: int):
        if number % self.every:
            return record
        fields = {field: None for kind, field in self.nulled if kind == type(record).__name__}
        if isinstance(record, Sample):
            fields["processes"] = [self._null(process, 0) for process in record.processes]
        return msgspec.structs.replace(record, **fields)


def optional_fields(kind: type) -> list[tuple[str, str]]:
    """Those that may be null by their type."""
    hints = typing.get_type_hints(kind)
    return [(kind.__name__, field) for field, hint in hints.items() if type(None) in typing.get_args(hint)]


KINDS = typing.get_args(AnyRecord)
NAMES = sorted(kind.__name__ for kind in KINDS)
FIELDS = [pair for kind in (*KINDS, Process) for pair in optional_fields(kind)]
DAMAGES = st.builds(
    Damage,
    cut=st.one_of(st.just(1.0), st.floats(0, 1)),
    kinds=st.frozensets(st.sampled_from(NAMES), max_size=2),
    single=st.frozensets(st.integers(0, 600), max_size=60),
    nulled=st.frozensets(st.sampled_from(FIELDS), max_size=25),
    every=st.integers(1, 3),
)


@pytest.fixture(scope="module", params=["live", "fresh"])
def whole(request, tmp_path_factory) -> RunDirectory:
    write = {"live": synthetic_run.write_live_run, "fresh": synthetic_run.write_run}[request.param]
    path = tmp_path_factory.mktemp("damaged") / "run"
    return write(path, configurations=3, rounds=2, pairs=1, trace_kernels=2)


def damaged_run(whole: RunDirectory, damage: Damage) -> Damaged:
    damaged = Damaged(whole.path)
    damaged.left = damage.done_to(whole.records())
    return damaged


def analysed(run: RunDirectory) -> Analysis:
    traces = {path.name.split(".")[0]: read_trace(path) for path in run.traces.iterdir()}
    return analyse(run.read_spec(), run.records(), run.worker_batches(), traces, run.places())


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=DAMAGES)
def test_a_report_is_made_of_what_is_left(whole: RunDirectory, damage: Damage) -> None:
    damaged = damaged_run(whole, damage)
    spec = damaged.read_spec()
    assert_honest(analysed(damaged))
    made, _ = outcome.assemble(damaged)
    assert render_markdown(made, spec)


def test_a_report_in_which_all_is_null_that_may_be(whole: RunDirectory) -> None:
    damaged = damaged_run(whole, Damage(1.0, frozenset(), frozenset(), frozenset(FIELDS), 1))
    assert_honest(analysed(damaged))
    outcome.write(damaged, show_paths=False)
    assert damaged.report_html.stat().st_size > 0
