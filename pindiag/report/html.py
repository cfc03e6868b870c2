"""report.html: one file that loads nothing."""

from __future__ import annotations

import base64
import hashlib

from markupsafe import Markup

from pindiag import figures
from pindiag.model import Drawing, Report, RunSpec
from pindiag.report import _templates, names, text
from pindiag.report.view import view


def render_html(report: Report, drawing: Drawing, spec: RunSpec) -> str:
    """The page as text.

    Args:
        report: as `redact_report` gives it; what it says of redaction, the footer repeats.
        drawing: what the charts show beyond it.
        spec: for the target's name and the commands to go on with.

    Raises:
        TemplateMissing: the installation is broken.
    """
    style, script = _templates.asset("report.css"), _templates.asset("report.js")
    page = _templates.template("report.html.j2").render(
        v=view(report, drawing, spec),
        figures=figures,
        names=names,
        quantity=text.quantity,
        record=text.record,
        style=Markup(style),
        style_hash=policy_hash(style),
        script=Markup(script),
        script_hash=policy_hash(script),
        version=spec.pindiag_version,
        started=spec.started_utc,
    )
    return page if page.endswith("\n") else f"{page}\n"


def policy_hash(content: str) -> str:
    """The policy names the page's own style and script by hash: nothing else can run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
