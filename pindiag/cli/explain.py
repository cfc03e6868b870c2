"""`pindiag explain`: one root cause, explained."""

import click


@click.command("explain", short_help="Explain a root cause.")
@click.argument("rule", metavar="CODE|NAME")
def command(rule: str) -> None:
    """Explain a root cause: what it means, how it is decided, how it is mended, when to ignore it."""
    from pindiag import rules
    from pindiag.cli import console

    console.payload(rules.explain(rule))
