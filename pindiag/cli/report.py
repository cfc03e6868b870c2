"""`pindiag report`: make a run's report again from what stands on disk."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("report", short_help="Make a report again, from disk.")
@click.argument("run_directory", metavar="RUN_DIR", type=click.Path(path_type=Path))
@click.option("--json", "json_path", metavar="PATH|-", help="Also write report.json there; - is standard output.")
@click.option("--open", "open_it", is_flag=True, help="Open the report in a browser.")
@click.option("--show-paths", is_flag=True, help="Do not redact home, user and host names and paths.")
@click.option("-q", "--quiet", is_flag=True, help="Print the verdict in one line.")
def command(run_directory: Path, json_path: str | None, open_it: bool, show_paths: bool, quiet: bool) -> int:
    """Make the report of RUN_DIR again, from its records; needs neither torch nor a GPU.

    Works on a run whose parent was killed, too: the user's files are put back first.
    """
    from pindiag import api
    from pindiag.cli import browser, console

    made = api.report(run_directory, show_paths=show_paths)
    console.verdict(made, run_directory, quiet=quiet, json_path=json_path)
    if open_it:
        browser.show(run_directory / "report.html")
    return 0
