"""A run made fit for a ticket: its text, and a zip to attach."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import NamedTuple

import msgspec

from pindiag import figures
from pindiag.api.outcome import redacted
from pindiag.errors import OutputRefused
from pindiag.model import Report, RunSpec
from pindiag.store import RunDirectory

LIMIT_BYTES = 10_000_000
"""What the strictest of the usual trackers takes as an attachment."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Two zips of one run are equal."""


class Ticket(NamedTuple):
    """What goes into the tracker."""

    markdown: str
    archive: Path
    left_out: list[str]
    """What the zip does not hold, with the reason."""


def ticket(
    run_directory: Path, output: Path | None = None, *, limit_bytes: int = LIMIT_BYTES, show_paths: bool = False
) -> Ticket:
    """Write a zip of report.html, summary.md, report.json and the redacted environment, and give the ticket's text.

    All is made anew from the records, so that nothing is in it that an earlier report was allowed to show.

    Args:
        run_directory: the run.
        output: the zip; None: ticket.zip in the run directory.
        limit_bytes: what the zip may have; files that do not fit are left out, the most useful ones last.
        show_paths: leave names, addresses and paths; secrets go in any case.

    Raises:
        NotARun: the folder holds no run of this schema version.
        OutputRefused: the zip cannot be written.
    """
    from pindiag.report.reproduction import command
    from pindiag.report.ticket import render_ticket

    directory = RunDirectory.open(run_directory)
    report, files, spec = _files(directory, show_paths=show_paths)
    archive = output or directory.path / "ticket.zip"
    content, left_out = _zip(files, limit_bytes)
    try:
        archive.write_bytes(content)
    except OSError as error:
        raise OutputRefused(f"{archive} cannot be written: {error.strerror}.", "Name another -o.") from error
    held = [f"`{name}`" for name in files if name not in left_out]
    reasons = [f"`{name}`, {reason}" for name, reason in left_out.items()]
    attached = [f"`{archive.name}` ({figures.byte_size(len(content))}): {', '.join(held) or 'nothing'}"]
    asked = directory.read_spec()
    markdown = render_ticket(report, spec, command(asked, show_paths=show_paths), attached, reasons)
    return Ticket(markdown, archive, reasons)


def _files(directory: RunDirectory, *, show_paths: bool) -> tuple[Report, dict[str, bytes], RunSpec]:
    """What may be attached, the most useful first."""
    from pindiag.report import render_html, render_markdown

    report, drawing, spec = redacted(directory, show_paths=show_paths)
    files = {
        "summary.md": render_markdown(report, spec).encode(),
        "environment.json": msgspec.json.format(msgspec.json.encode(report.environment)),
        "report.html": render_html(report, drawing, spec).encode(),
        "report.json": msgspec.json.format(msgspec.json.encode(report)),
    }
    return report, files, spec


def _zip(files: dict[str, bytes], limit_bytes: int) -> tuple[bytes, dict[str, str]]:
    """The archive of the files that fit, in their order, and why others do not."""
    fitting: dict[str, bytes] = {}
    left_out: dict[str, str] = {}
    for name, content in files.items():
        if len(_archive({**fitting, name: content})) <= limit_bytes:
            fitting[name] = content
        else:
            left_out[name] = f"{figures.byte_size(len(content))}: the zip may have {figures.byte_size(limit_bytes)}"
    return _archive(fitting), left_out


def _archive(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED, 9)
    return buffer.getvalue()
