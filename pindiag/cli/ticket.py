"""`pindiag ticket`: a run as the text of a ticket, and a zip to attach."""

from __future__ import annotations

from pathlib import Path

import click

from pindiag.cli.run import Size


@click.command("ticket", short_help="Print a run as a ticket, and zip it to attach.")
@click.argument("run_directory", metavar="RUN_DIR", type=click.Path(path_type=Path))
@click.option("-o", "--output", metavar="ZIP", type=click.Path(path_type=Path), help="Default: RUN_DIR/ticket.zip.")
@click.option("--limit", type=Size(), default="10MB", show_default=True, help="What the zip may have.")
@click.option("--show-paths", is_flag=True, help="Do not redact home, user and host names and paths.")
def command(run_directory: Path, *, output: Path | None, limit: int, show_paths: bool) -> None:
    """Print RUN_DIR as the text of a ticket, in Markdown for GitHub, GitLab and Jira, and write a zip to attach.

    The zip holds summary.md, the redacted environment, report.html and report.json, as far as they fit. All is made
    from the records and redacted, whatever the report on disk shows.

    \b
    pindiag ticket pindiag-runs/train-20260101T120000Z | gh issue create -t "Slow training" -F -
    """  # noqa: D301 - click wants the character itself
    from pindiag.api.ticketing import ticket
    from pindiag.cli import console

    made = ticket(run_directory, output, limit_bytes=limit, show_paths=show_paths)
    console.payload(made.markdown)
    console.note(f"To attach: {made.archive}")
    for reason in made.left_out:
        console.note(f"Left out of it: {reason}")
