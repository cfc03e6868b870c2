"""Report -> report.html and summary.md, both made of one redacted model."""

from pindiag.report.html import render_html
from pindiag.report.markdown import render_markdown
from pindiag.report.redaction import redact, redact_report

__all__ = ["redact", "redact_report", "render_html", "render_markdown"]
