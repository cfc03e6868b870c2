"""`pindiag schema`: the JSON Schemas of what pindiag writes for programs."""

from __future__ import annotations

import click


@click.command("schema", short_help="Print the JSON Schema of report.json.")
@click.argument("what", type=click.Choice(["report", "doctor", "comparison"]), default="report")
def command(*, what: str) -> None:
    """Print the JSON Schema of report.json, or of what `doctor --json` or `compare --json` prints.

    \b
    pindiag schema > report.schema.json
    pindiag schema doctor
    """  # noqa: D301 - click wants the character itself
    import msgspec

    from pindiag.cli import console
    from pindiag.comparison_model import Comparison
    from pindiag.doctor_model import Doctor
    from pindiag.model import Report

    kind = {"report": Report, "doctor": Doctor, "comparison": Comparison}[what]
    console.payload(msgspec.json.format(msgspec.json.encode(msgspec.json.schema(kind))).decode())
