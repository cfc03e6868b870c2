"""Loaders that do not train, on the page."""

from __future__ import annotations

import msgspec

from pindiag import model as m
from pindiag.report import render_html

from . import example
from .test_html import Page


def other(**changes):
    usual = {
        "location": "train.py:31",
        "dataset_class": "Held",
        "configuration": example.confirmed().trials[0].configuration,
        "batches": 40,
        "wait_ms": 12.34,
        "pass_s": 4.0,
        "epoch_share": 0.25,
    }
    return m.OtherLoader(**(usual | changes))


def text(*others):
    report = example.confirmed()
    report = msgspec.structs.replace(report, loader=msgspec.structs.replace(report.loader, beside=list(others)))
    return Page(render_html(report, example.NO_DRAWING, example.SPEC)).text


def test_waits_and_share_of_an_epoch():
    shown = text(other())
    assert "Loaders that do not train" in shown
    assert "train.py:31 Held no workers, pin off, batch 64 12.3 4.0 s 25 %" in shown


def test_what_is_missing_says_why():
    shown = text(
        other(wait_ms=None, pass_s=None, epoch_share=None, reason="never read"),
        other(pass_s=None, epoch_share=None, reason="beside the training loader"),
        other(epoch_share=None, reason="no epoch"),
    )
    assert shown.count("(never read)") == 1
    assert "12.3 not measured (beside the training loader)" in shown
    assert "4.0 s not measured (no epoch)" in shown


def test_long_lists_are_cut():
    shown = text(*(other(location=f"train.py:{line}") for line in range(100, 113)))
    assert "train.py:109" in shown
    assert "train.py:110" not in shown
    assert "3 more are in report.json." in shown


def test_no_others_no_table():
    assert "Loaders that do not train" not in text()
