"""Workers, pinning and machine in detail, and what the page says of loaders that a framework makes."""

from __future__ import annotations

from functools import partial

import msgspec

from pindiag import model as m
from pindiag.analysis import analyse
from pindiag.plan.schedule import next_order
from pindiag.report import details, render_html
from pindiag.report.view import view

from . import example
from .test_html import Page

PINNED, UNPINNED, ALONE = "nw4-pin1-nb1", "nw4-pin0-nb0", "nw0-pin0-nb0"


def fact(name, trial, value, unit="ms"):
    return m.Fact(name=name, value=value, unit=unit, trial=trial, source="blocks 1, 2")


def with_facts(*facts, **loader):
    report = example.confirmed()
    own = msgspec.structs.replace(report.loader, **loader)
    return msgspec.structs.replace(report, facts=[*report.facts, *facts], loader=own)


def tables(report):
    shown = view(report, example.NO_DRAWING, example.SPEC)
    return {one.detail.title: one.table for one in [*shown.beside_details, *shown.machine_details]}


def cells(table, trial):
    line = next(line for line in table.lines if line.row.trial.id == trial)
    return dict(zip(table.columns, [cell.text for cell in line.cells], strict=True))


def test_what_was_measured_of_workers_has_its_columns():
    report = with_facts(
        fact("worker_idle_ms", PINNED, 12.34),
        fact("worker_idle_ms", ALONE, None),
        fact("worker_run_delay_share", PINNED, 0.25, "1"),
        fact("worker_pss_bytes", UNPINNED, 3_000_000, "B"),
    )
    table = tables(report)["Workers in detail"]
    assert table.columns == ["waits for an index", "queued for one", "memory of all (PSS)"]
    assert list(cells(table, PINNED).values()) == ["12.3", "25 %", None]
    assert list(cells(table, UNPINNED).values()) == [None, None, "3.00 MB"]
    assert list(cells(table, ALONE).values()) == ["–", "–", "–"]


def test_pinning_is_split_where_it_happens():
    report = with_facts(
        fact("pin_allocate_ms", PINNED, 1.0), fact("pin_copy_ms", PINNED, 4.0), fact("pin_idle_ms", UNPINNED, None)
    )
    table = tables(report)["Pinning in detail"]
    assert cells(table, PINNED) == {"allocates": "1.0", "copies": "4.0"}
    assert cells(table, UNPINNED) == {"allocates": "–", "copies": "–"}


def test_the_machine_meanwhile():
    report = with_facts(fact("throttled_share", UNPINNED, 0.5, "1"), fact("page_cache_share", UNPINNED, 0.9, "1"))
    assert cells(tables(report)["The machine meanwhile"], UNPINNED) == {"held back": "50 %", "page cache": "90 %"}


def test_nothing_measured_no_table():
    assert not tables(example.confirmed())


def test_all_facts_shown_are_facts_of_the_analysis(script, spec):
    fake = script(detailed=True)
    fake.play(partial(next_order, spec()))
    known = {one.name for one in analyse(spec(), fake.records, fake.batches, {}, {}).facts}
    shown = {name for one in (details.WORKERS, details.PINNING, details.MACHINE) for name, _ in one.columns.values()}
    assert shown <= known


def test_batches_that_stayed_unpinned_are_told():
    told = fact("batch_pinned", PINNED, False, None)
    page = Page(render_html(with_facts(told), example.NO_DRAWING, example.SPEC)).text
    assert "Batches came out unpinned" in page
    assert "4 workers, pin, non_blocking" in page.partition("Batches came out unpinned")[2][:160]
    pinned = with_facts(fact("batch_pinned", PINNED, True, None))
    assert "Batches came out unpinned" not in Page(render_html(pinned, example.NO_DRAWING, example.SPEC)).text


def test_who_makes_the_loader_is_said():
    report = with_facts(maker="transformers.trainer")
    page = Page(render_html(report, example.NO_DRAWING, example.SPEC)).text
    assert "train.py:14 , made there by transformers.trainer" in page.replace("train.py:14,", "train.py:14 ,")
