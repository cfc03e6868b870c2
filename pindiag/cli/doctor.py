"""`pindiag doctor`: what this machine can do and what limits it, without a script."""

from __future__ import annotations

import click


@click.command("doctor", short_help="Measure what this machine can do, without a script.")
@click.option("--python", metavar="PATH", help="The interpreter that trains. Default: pindiag's own.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on standard output, and nothing else there."
)
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(*, python: str | None, as_json: bool, quiet: bool) -> None:
    """Measure what this machine can do, and say what limits it. No script is needed; it takes a minute at most.

    CPUs that may be used and why, memory and its limits, /dev/shm, open files, GPU, driver and PCIe link; how fast
    pageable and pinned memory goes to the GPU by size, and what pinning costs; how fast a worker hands batches over,
    by start method; what is known to be wrong with this version of torch. What cannot be had says why.

    \b
    pindiag doctor
    pindiag doctor --python /path/to/the/python/that/trains
    pindiag doctor --json > machine.json
    """  # noqa: D301 - click wants the character itself
    import msgspec

    from pindiag.api.doctor import examine
    from pindiag.cli import console
    from pindiag.report.doctor import sections

    with console.Progress(quiet=quiet, verbose=False) as progress:
        found = examine(python=python, progress=progress)
    if as_json:
        console.payload(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        console.sections(sections(found))
