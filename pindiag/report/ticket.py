"""A run as the text of a ticket: plain Markdown that GitHub, GitLab and Jira render."""

from __future__ import annotations

from collections.abc import Sequence

from pindiag import figures
from pindiag.model import Report, RunSpec
from pindiag.report import _templates
from pindiag.report.markdown import render_markdown
from pindiag.report.text import clean

_VERSIONS = {
    "pindiag": "pindiag",
    "python": "Python",
    "torch": "torch",
    "cuda": "CUDA",
    "gpu": "GPU",
    "gpu_driver": "GPU driver",
    "usable_cpus": "CPUs that may be used",
    "memory_bytes": "memory",
    "platform": "platform",
    "start_method": "start method of workers",
}


def render_ticket(report: Report, spec: RunSpec, command: str, attached: Sequence[str], left_out: Sequence[str]) -> str:
    """The summary, a block to reproduce it, versions, and what is attached.

    Args:
        report: as `redact_report` gives it.
        spec: redacted.
        command: redacted, from `reproduction.command`.
        attached: what the zip beside it holds, in words.
        left_out: what it does not hold, with the reason.

    Raises:
        TemplateMissing: the installation is broken.
    """
    return _templates.template("ticket.md.j2").render(
        summary=render_markdown(report, spec).strip(),
        command=command.replace("`", "'"),
        versions=[(label, _cell(key, report)) for key, label in _VERSIONS.items() if report.environment.get(key)],
        started=spec.started_utc,
        attached=attached,
        left_out=left_out,
    )


def _cell(key: str, report: Report) -> str:
    value = report.environment[key]
    return figures.byte_size(value) if key == "memory_bytes" and isinstance(value, int) else markdown_cell(str(value))


def markdown_cell(text: str) -> str:
    """Text of others that ends neither its cell nor its line."""
    return str(clean(text)).replace("\n", " ").replace("|", "\\|").replace("<", "\\<")
