"""`pindiag apply`: the change that a run recommends, carried out in the script."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("apply", short_help="Make the change that a run recommends, after a look at it.")
@click.argument("run_directory", metavar="RUN_DIR", type=click.Path(path_type=Path))
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--also",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file elsewhere that may be edited.",
)
def command(run_directory: Path, *, yes: bool, also: tuple[Path, ...]) -> None:
    """Show the change that RUN_DIR recommends as a diff, ask, and make it in your files.

    A file is edited only if it is as it was measured, and lies where the run was started (or beside the script, where
    that lies elsewhere) or is named by --also. Where the last commit of git does not hold it as it is, a copy with
    .orig at the end of its name is made first. What undoes the change is printed.
    """
    from pindiag.api.applying import carry_out, propose
    from pindiag.cli import console

    proposal = propose(run_directory, also)
    console.proposal(proposal)
    if not proposal.edits:
        console.note("It is so already; no file was changed.")
        return
    if not yes and not console.agreed("Make this change?"):
        console.note("No file was changed.")
        return
    for way_back in carry_out(proposal.edits):
        console.note(f"To undo it: {way_back}")
