"""The rules as documentation: the list, one explained, the table of the README."""

from __future__ import annotations

import difflib
import inspect

from pindiag.errors import UnknownRule
from pindiag.rules.registry import RULES
from pindiag.rules.rule import Rule


def catalogue() -> tuple[Rule, ...]:
    """All rules in the order of their codes."""
    return RULES


def find(code_or_name: str) -> Rule:
    """The rule of a code ("PD108", "108") or name ("pin_thread_bound"), in any case.

    Raises:
        UnknownRule: there is none; the hint names what comes near.
    """
    wanted = code_or_name.strip().lower().replace("-", "_")
    for each in RULES:
        if wanted in (each.code.lower(), each.code.lower().removeprefix("pd"), each.name):
            return each
    names = [name for each in RULES for name in (each.name, each.code.lower())]
    near = difflib.get_close_matches(wanted, names, n=3)
    hint = f"Did you mean {' or '.join(near)}?" if near else "`pindiag rules` lists them."
    raise UnknownRule(f"There is no rule {code_or_name}.", hint)


def explain(code_or_name: str) -> str:
    """A rule's documentation as text: code, name, then the sections of its docstring, then its options.

    Raises:
        UnknownRule: no rule has that code or name.
    """
    found = find(code_or_name)
    heading = f"{found.code} {found.name}"
    parts = [heading, "=" * len(heading), "", inspect.cleandoc(found.doc)]
    if found.options:
        parts += ["", "Options:"]
        parts += [f"    {name} = {value:g}" for name, value in found.options.items()]
    return "\n".join(parts) + "\n"


def markdown_table() -> str:
    """The rules as a Markdown table, as it stands in the README."""
    rows = [f"| {each.code} | `{each.name}` | {each.summary} |" for each in RULES]
    return "\n".join(["| code | cause | what it means |", "|---|---|---|", *rows]) + "\n"
