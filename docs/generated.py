"""Pages that are made from code: causes, statements of an article, errors, commands, Python, schemas, a report.

mkdocs calls the two hooks at the end; all else is pure, or asks pindiag itself.
"""

from __future__ import annotations

import inspect
import json
import re
import tempfile
import textwrap
from collections import ChainMap
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
import yaml

from pindiag import api, cli, errors, rules
from pindiag.comparison_model import Comparison
from pindiag.doctor_model import Doctor
from pindiag.model import Report
from pindiag.rules.rule import Rule
from pindiag.store import RunDirectory

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parents[1]
SCHEMAS = {"report": Report, "doctor": Doctor, "comparison": Comparison}
_SECTION = re.compile(r"^([A-Z][^\n:]*):\n((?:[ ]{4}[^\n]*\n|\n)+)", re.MULTILINE)
_AFTER = re.compile(r"^(after: )", re.MULTILINE)
"""A paragraph of its own, beside what it was before."""
_ISSUE = re.compile(r"(?<![\w/`])([\w.-]+/[\w.-]+)#(\d+)")


def pages() -> dict[str, str]:
    """All of them, by the path that they have on the site; the report apart, which takes seconds."""
    return {
        "rules/index.md": rule_index(),
        **{f"rules/{each.name}.md": rule_page(each) for each in rules.catalogue()},
        "article.md": article_page(),
        "errors.md": error_page(),
        "command-line.md": command_page(),
        "python.md": python_page(),
        "schema.md": schema_page(),
        **{f"{name}.schema.json": json.dumps(msgspec.json.schema(kind), indent=2) for name, kind in SCHEMAS.items()},
    }


# ------------------------------------------------------------------------------------------------------- causes


def rule_index() -> str:
    """The table of the README, each cause leading to its page."""
    linked = re.sub(r"`(\w+)` \|", r"[`\1`](\1.md) |", rules.markdown_table())
    return (
        "# Causes\n\nA cause is *confirmed* only when taking it away, by experiment, made the run faster by more than"
        " the noise. `pindiag explain CODE` prints these pages.\n\n" + linked
    )


def rule_page(each: Rule) -> str:
    """A rule's documentation: the sections of its docstring, then its options."""
    text = inspect.cleandoc(each.doc) + "\n"
    parts = [f"# `{each.name}`", f"**{each.code}**: {each.title}.", _SECTION.sub("", text).strip()]
    for heading, body in _SECTION.findall(text):
        parts += [f"## {heading}", _AFTER.sub(r"\n\1", inspect.cleandoc(body))]
    if each.options:
        parts += ["## Options", "| option | value |\n|---|--:|"]
        parts[-1] += "".join(f"\n| `{name}` | {value:g} |" for name, value in each.options.items())
    return _ISSUE.sub(r"[\1#\2](https://github.com/\1/issues/\2)", "\n\n".join(parts)) + "\n"


# ------------------------------------------------------------------------------------------------------ article

HEADINGS = {"cause": "Its six causes", "solution": "Its three solutions", "pitfall": "Ten pitfalls"}
"""Of the article's statements, by their kind."""

RATIOS = {
    "scenario 1, pinning by the article's clock": ("scenario_1", "by_the_articles_clock"),
    "scenario 1, pinning by a clock around all": ("scenario_1", "by_a_clock_around_all"),
    "scenario 3, two workers a CPU, over four": ("scenario_3",),
    "pinning, synchronised after each copy and step": ("three_way", "pin_memory", "synchronised"),
    "pinning, over a window": ("three_way", "pin_memory", "over_a_window"),
    "pinning and non_blocking, synchronised": ("three_way", "pin_memory and non_blocking", "synchronised"),
    "pinning and non_blocking, over a window": ("three_way", "pin_memory and non_blocking", "over_a_window"),
    "`create_optimal_dataloader`, over four workers": ("optimal",),
    "the main thread, where its threads were looked at": ("threads",),
}
"""What is shown of its figures, by where they stand."""


def article_page() -> str:
    """What stands in article-text.txt, what was measured, then the statements of article.yaml with what covers each."""
    statements: list[dict[str, Any]] = yaml.safe_load((ROOT / "benchmarks" / "article.yaml").read_text())
    results = article_results()
    parts = [(ROOT / "docs" / "article-text.txt").read_text().strip(), *article_figures(results)]
    for kind, heading in HEADINGS.items():
        rows = [
            f"| {each['says']} | {each['truth']} | {', '.join(covered_by(link, results) for link in each['covers'])} |"
            for each in statements
            if each["kind"] == kind
        ]
        parts += [f"## {heading}", "\n".join(["| it says | how true it is | here |", "|---|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


def article_results() -> dict[str, dict[str, Any]]:
    """The latest figures of benchmarks/article.py that are kept, by the kind of machine."""
    kept = sorted((ROOT / "benchmarks" / "results").glob("article-*.json"), key=lambda path: path.stem[-10:])
    return {path.stem.split("-")[1].upper(): json.loads(path.read_text()) for path in kept}


def article_figures(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A table of the ratios, a column a machine; nothing where none was kept."""
    if not results:
        return []
    columns = " | ".join(f"{name} ({found['rounds']} rounds)" for name, found in results.items())
    lines = [f"| how many times as fast | {columns} |", "|---|" + "--:|" * len(results)]
    for what, keys in RATIOS.items():
        cells = " | ".join(_ratio(reduce(getitem, keys, found)) for found in results.values())
        lines.append(f"| {what} | {cells} |")
    where = [f"{name}: {found['machine']}, {found['date']}." for name, found in results.items()]
    return ["## What was measured", "\n".join(lines), " ".join(where)]


def _ratio(found: Mapping[str, Any]) -> str:
    interval = found["ci95"]
    return f"{found['ratio']:.2f}" + (f" ({interval[0]:.2f}-{interval[1]:.2f})" if interval else "")


def found_here(cause: str, results: Mapping[str, Mapping[str, Any]]) -> str:
    """What the sweeps said of a cause, by the kind of machine."""
    said = []
    for name, result in results.items():
        of_statements = ChainMap(*(each["found"] or {} for each in result["statements"]))
        said += [f"{name}: {of_statements[cause].replace('_', ' ')}"] if cause in of_statements else []
    return f" ({'; '.join(said)})" if said else ""


def covered_by(link: str, results: Mapping[str, Mapping[str, Any]]) -> str:
    """A link to a rule's page, to a part of the report, or to where a fact is shown in it."""
    kind, _, name = link.partition(":")
    if kind == "rule":
        return f"[`{name}`](rules/{name}.md){found_here(name, results)}"
    if kind == "report":
        return f"[report: {name}](example.html#{name})"
    return f"[fact `{name}`](example.html#records)"


# ------------------------------------------------------------------------------------------------------- errors


def all_errors() -> Iterator[type[errors.PindiagError]]:
    """Every kind of error, the general ones first."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    yield from (kind for kind in kinds if issubclass(kind, errors.PindiagError))


def error_page() -> str:
    """Every kind of error: code, cause, next step, exit code."""
    rows = []
    for kind in sorted(all_errors(), key=lambda kind: kind.code):
        cause, step, *_ = (" ".join(part.split()) for part in inspect.cleandoc(kind.__doc__ or "").split("\n\n"))
        rows.append(f"| {kind.code} | {cause} | {step} | {kind.exit_code:d} |")
    return "\n".join(
        [
            "# Errors\n",
            "An error is one sentence that names the cause, one that says what to do, and its code, on standard error.",
            "What the script itself raises is no error of pindiag: it is shown as it is, with exit code 3.\n",
            "| code | cause | next step | exit code |",
            "|---|---|---|--:|",
            *rows,
            "",
        ]
    )


# ----------------------------------------------------------------------------------------- commands and Python


def command_page() -> str:
    """What each command says of itself."""
    parent = click.Context(cli.group, info_name="pindiag", max_content_width=110, terminal_width=110)
    parts = ["# Command line", _told(cli.group, parent)]
    for name, command in cli.group.commands.items():
        context = click.Context(command, info_name=name, parent=parent, max_content_width=110, terminal_width=110)
        parts += [f"## pindiag {name}", _told(command, context)]
    return "\n\n".join(parts) + "\n"


def _told(command: click.Command, context: click.Context) -> str:
    return f"```text\n{command.get_help(context)}\n```"


def python_page() -> str:
    """The functions and classes of `pindiag.api`."""
    parts = ["# Python", _paragraphs(api)]
    for name in sorted(api.__all__):
        made = getattr(api, name)
        parts += [f"## `{name}`", f"```python\n{signature(name, made)}\n```", _paragraphs(made)]
    return "\n\n".join(parts) + "\n"


def signature(name: str, made: object) -> str:
    """How something is called."""
    if not inspect.isfunction(made):
        return f"class {name}"
    told = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(made)))
    return textwrap.fill(name + told, 100, subsequent_indent="    ")


def _paragraphs(documented: object) -> str:
    """A docstring, its sections as lists, then a class's own methods."""
    text = _SECTION.sub(_listed, (inspect.getdoc(documented) or "") + "\n").strip()
    own = vars(documented).items() if inspect.isclass(documented) else ()
    methods = [(name, made) for name, made in own if inspect.isfunction(made) and name[0] != "_" and made.__doc__]
    lines = [f"- `{signature(name, made)}`: {inspect.getdoc(made)}" for name, made in methods]
    return "\n\n".join([text, "\n".join(lines)]).strip()


def _listed(section: re.Match[str]) -> str:
    body = re.sub(r"^([\w, ]+): ", r"- `\1`: ", inspect.cleandoc(section[2]), flags=re.MULTILINE)
    return f"**{section[1]}**\n\n{body}\n\n"


# ------------------------------------------------------------------------------------------------------- schema


def schema_page() -> str:
    """The fields of report.json, struct after struct."""
    kinds: Mapping[str, Any] = msgspec.json.schema(Report)["$defs"]
    parts = [
        "# JSON schema",
        "`report.json` is the contract with other programs. All keys exist from version 1 on; what was not measured is"
        " null, with its reason in `not_measured`. As JSON Schema: [report.json](report.schema.json),"
        " [`pindiag doctor --json`](doctor.schema.json), [`pindiag compare --json`](comparison.schema.json);"
        " `pindiag schema` prints them.",
    ]
    for name in ["Report", *sorted(kinds.keys() - {"Report"})]:
        fields = kinds[name].get("properties", {})
        rows = [f"| `{key}` | {type_of(told)} |" for key, told in fields.items()]
        parts += [f"## {name}", kinds[name].get("description", ""), "\n".join(["| key | type |", "|---|---|", *rows])]
    return "\n\n".join(part for part in parts if part) + "\n"


def type_of(told: Mapping[str, Any]) -> str:
    """A JSON Schema's type in words, structs as links."""
    if "$ref" in told:
        name = told["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in told:
        return ", ".join(type_of(each) for each in told["anyOf"])
    if "enum" in told:
        return ", ".join(f"`{json.dumps(each)}`" for each in told["enum"])
    if told.get("type") == "array":
        return f"list of ({type_of(told['items'])})" if told.get("items") else "list"
    if told.get("type") == "object" and isinstance(told.get("additionalProperties"), Mapping):
        return f"object of ({type_of(told['additionalProperties'])})"
    return str(told.get("type", "any"))


# ------------------------------------------------------------------------------------------------------- report


def example(folder: Path) -> RunDirectory:
    """The run recorded on an H200 that `pindiag demo` shows, with its report."""
    run, _ = api.demo(folder / "demo")
    return RunDirectory.open(run)


# -------------------------------------------------------------------------------------------------------- hooks


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put a page for each cause into the navigation."""
    causes = next(entry["Causes"] for entry in config.nav or [] if "Causes" in entry)
    causes += [{f"{each.code} {each.name}": f"rules/{each.name}.md"} for each in rules.catalogue()]
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages."""
    from mkdocs.structure.files import File

    with tempfile.TemporaryDirectory() as folder:
        report = example(Path(folder)).report_html.read_text(encoding="utf-8")
    for path, content in {**pages(), "example.html": report}.items():
        files.append(File.generated(config, path, content=content))
    return files
