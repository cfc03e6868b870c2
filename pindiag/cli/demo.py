"""`pindiag demo`: a report without a GPU and without a script."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("demo", short_help="Show the report of a run recorded on an H200.")
@click.option(
    "-o", "--output", metavar="DIR", type=click.Path(path_type=Path), help="Default: pindiag-runs/demo-h200, made anew."
)
def command(output: Path | None) -> None:
    """Show the report of a run that was recorded on an H200, and say where it lies.

    The script trains a linear model on rows of floats, pinned or not, with workers or without. Its records are part of
    pindiag; the report is made of them on the spot, and opened where there is a display.
    """
    from pindiag.api.demonstration import SAID, demo
    from pindiag.cli import browser, console

    run_directory, made = demo(output)
    console.note(SAID)
    console.verdict(made, run_directory, quiet=False, json_path=None)
    browser.show(run_directory / "report.html")
