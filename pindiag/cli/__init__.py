"""The command line: one file a subcommand; `main` turns every error into its sentence and exit code.

Commands import what they need inside themselves, so that `pindiag --help` loads nothing but click.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from pindiag import __version__
from pindiag.cli import (
    apply,
    color,
    compare,
    completion,
    console,
    demo,
    doctor,
    explain,
    listing,
    opening,
    report,
    rules,
    run,
    schema,
    ticket,
)
from pindiag.errors import ExitCode, PindiagError, UsageError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="pindiag")
def group() -> None:
    """Tells, by experiment, why a PyTorch training script is slow.

    \b
    Start with:  pindiag run train.py --sweep
    The script is not edited, and its files are as before afterwards.
    """  # noqa: D301 - click wants the character itself


for module in (run, demo, doctor, report, apply, compare, ticket, listing, opening, rules, explain, schema, completion):
    group.add_command(module.command)
for each in (group, *group.commands.values()):
    each.params.append(color.option())


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code (see `ExitCode`)."""
    try:
        result = group.main(args=None if args is None else list(args), prog_name="pindiag", standalone_mode=False)
    except click.exceptions.NoSuchOption as error:
        console.error(error.format_message().rstrip("."), "Options of the script go after `--`.", UsageError.code)
        return ExitCode.USAGE
    except click.ClickException as error:
        console.error(error.format_message(), "See `pindiag --help`.", UsageError.code)
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        console.error("Interrupted.")
        return ExitCode.INTERRUPTED
    except PindiagError as error:
        console.error(error.cause, error.hint, error.code)
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()
        return ExitCode.OK
    except Exception as error:
        console.crash(error)
        return ExitCode.INTERNAL
    return result if isinstance(result, int) else ExitCode.OK
