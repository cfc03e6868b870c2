"""`pindiag schema`: the JSON Schema of report.json."""

import click


@click.command("schema")
def command() -> None:
    """Print the JSON Schema of report.json."""
    import msgspec

    from pindiag.cli import console
    from pindiag.model import Report

    console.payload(msgspec.json.format(msgspec.json.encode(msgspec.json.schema(Report))).decode())
