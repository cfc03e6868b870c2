"""`--color`, which every command takes, before and after its name."""

from __future__ import annotations

import click

_MEANS = {"auto": None, "always": True, "never": False}


def _choose(context: click.Context, parameter: click.Parameter, value: str | None) -> None:  # noqa: ARG001
    if value is not None:
        context.color = _MEANS[value]


def option() -> click.Option:
    """The option; click hands its choice down to subcommands."""
    return click.Option(
        ["--color"],
        type=click.Choice(list(_MEANS)),
        callback=_choose,
        expose_value=False,
        envvar="PINDIAG_COLOR",
        help="Colours and bold: auto (the default: on a terminal, unless NO_COLOR is set), always, never.",
    )
