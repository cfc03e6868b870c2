"""`pindiag rules`: the root causes that pindiag can tell apart."""

import click


@click.command("rules", short_help="List the root causes.")
@click.option("--markdown", is_flag=True, help="Print the table as Markdown, as it stands in the README.")
def command(markdown: bool) -> None:
    """List the root causes, each with its code and what it means."""
    from pindiag import rules
    from pindiag.cli import console

    if markdown:
        console.payload(rules.markdown_table())
    else:
        console.table(("code", "cause", "what it means"), [(e.code, e.name, e.summary) for e in rules.catalogue()])
