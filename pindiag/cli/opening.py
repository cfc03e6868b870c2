"""`pindiag open`: a run's report in a browser."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("open", short_help="Open a report in a browser.")
@click.argument("run_directory", metavar="[RUN_DIR]", required=False, type=click.Path(path_type=Path))
def command(run_directory: Path | None) -> None:
    """Open the report of RUN_DIR (default: the newest run in pindiag-runs) in a browser.

    Its path is printed; where there is no display, that is all.
    """
    from pindiag.api import found
    from pindiag.cli import browser, console

    page = found.page(run_directory)
    console.payload(str(page))
    browser.show(page)
