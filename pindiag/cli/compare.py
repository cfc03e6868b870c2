"""`pindiag compare`: two runs beside each other, and a gate for CI."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("compare", short_help="Compare two runs; a gate for CI.")
@click.argument("base", metavar="BASE", type=click.Path(path_type=Path))
@click.argument("new", metavar="NEW", type=click.Path(path_type=Path))
@click.option("--html", "html_path", metavar="PATH", type=click.Path(path_type=Path), help="Also write a page there.")
@click.option("--json", "json_path", metavar="PATH|-", help="Also write JSON there; - is standard output.")
@click.option(
    "--fail-on",
    metavar="LIMIT",
    multiple=True,
    help='Exit with 1 where the 95 % interval excludes that NEW keeps to the limit: "throughput:-5%" (as written) or '
    '"recommended:-5%". Where no interval can be had, exit with 2. May be given twice.',
)
@click.option("--force", is_flag=True, help="Compare although machines or targets differ.")
@click.option("--show-paths", is_flag=True, help="Do not redact home, user and host names and paths.")
@click.option("-q", "--quiet", is_flag=True, help="Print the conclusion in one line.")
def command(
    base: Path,
    new: Path,
    *,
    html_path: Path | None,
    json_path: str | None,
    fail_on: tuple[str, ...],
    force: bool,
    show_paths: bool,
    quiet: bool,
) -> int:
    """Compare two runs, each a run directory or a report.json: throughput, stages, memory, verdicts.

    The ratio is NEW over BASE. Its interval (Welch's, of logarithms) comes from launches of their own where both runs
    verified their recommendation, else from their rounds. A gate therefore fails for a loss that is shown, not for one
    that the noise allows: more rounds make it sharper. Unlike machines or targets are refused without --force.

    \b
    pindiag compare pindiag-runs/before pindiag-runs/after
    pindiag compare main/report.json report.json --fail-on "throughput:-5%"
    """  # noqa: D301 - click wants the character itself
    import msgspec

    from pindiag import __version__
    from pindiag.api import comparison
    from pindiag.cli import ci, console
    from pindiag.errors import ExitCode
    from pindiag.report.comparison import render_comparison, render_comparison_summary, sections

    limits = [comparison.parse_limit(text) for text in fail_on]
    compared = comparison.compare(base, new, force=force, show_paths=show_paths)
    ci.step_summary(render_comparison_summary(compared))
    if html_path is not None:
        console.write(html_path, render_comparison(compared, __version__))
    if json_path is not None:
        console.write(json_path, msgspec.json.format(msgspec.json.encode(compared)).decode() + "\n")
    # After the files: whoever reads this through a pipe may close it.
    shown = sections(compared)
    console.sections(shown[:1] if quiet else shown, stderr=json_path == "-")
    hit = [limit for limit in limits if comparison.exceeded(compared, limit)]
    return ExitCode.FAIL_ON if hit else ExitCode.OK
