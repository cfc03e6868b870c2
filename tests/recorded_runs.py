"""Recordings as runs, and what is made of them: once in a process, since several modules look at all of them."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from recordings import Recording

from pindiag import api
from pindiag.api import outcome
from pindiag.model import Report
from pindiag.rules import Inputs
from pindiag.store import RunDirectory


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="recorded-")


@cache
def run_of(recording: Recording) -> RunDirectory:
    """The run directory, to be read only."""
    return recording.unpack(Path(_folder().name) / recording.archive.parent.name)


@cache
def report_of(recording: Recording) -> Report:
    """Its report by today's code."""
    return api.assemble(run_of(recording))[0]


@cache
def inputs_of(recording: Recording) -> Inputs:
    """What rules are told of it."""
    return outcome.inputs_of(run_of(recording))


def label(recording: Recording) -> str:
    """Its name among all."""
    return f"{recording.archive.parent.name}-{recording.name}"
