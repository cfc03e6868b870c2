"""The documentation has a line for everything, says what the code says, and its links lead somewhere."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
from pathlib import Path

import msgspec
import pytest
import yaml

from pindiag import api, cli, rules
from pindiag.model import Report

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text())


def load():
    spec = importlib.util.spec_from_file_location("generated", DOCS / "generated.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generated = load()
ERRORS = list(generated.all_errors())
PAGES = generated.pages()
WRITTEN = {path.name: path.read_text() for path in DOCS.glob("*.md")}


def rows(page: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| ")
    ]


def test_every_error_has_a_code_of_its_own():
    assert len({kind.code for kind in ERRORS}) == len(ERRORS) > 10


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_has_a_line_with_cause_and_next_step(kind):
    (line,) = [row for row in rows(PAGES["errors.md"]) if row[0] == kind.code]
    _, cause, step, exit_code = line
    assert inspect.getdoc(kind).startswith(cause)
    assert step.endswith(".")
    assert step != cause
    assert exit_code == str(int(kind.exit_code))


@pytest.mark.parametrize("each", rules.catalogue(), ids=lambda each: each.name)
def test_every_cause_has_a_page(each):
    page = PAGES[f"rules/{each.name}.md"]
    assert page.startswith(f"# `{each.name}`\n")
    for heading in ("What it means", "How it is decided", "Example", "Fix", "When to ignore"):
        assert f"\n## {heading}\n" in page
    assert all(f"| `{name}` | {value:g} |" in page for name, value in each.options.items())
    assert f"({each.name}.md)" in PAGES["rules/index.md"]
    text = inspect.cleandoc(each.doc)
    words = set(re.findall(r"\w{5,}", text)) - {"means", "decided", "ignore"}
    assert words <= set(re.findall(r"\w{5,}", page)), "nothing of the docstring is lost"


def test_references_lead_to_the_thread():
    assert "(https://github.com/pytorch/pytorch/issues/77139)" in PAGES["rules/pin_thread_bound.md"]


def test_every_command_and_function_has_its_place():
    assert {f"pindiag {name}" for name in cli.group.commands} == set(
        re.findall(r"^## (.+)$", PAGES["command-line.md"], re.MULTILINE)
    )
    assert "--budget" in PAGES["command-line.md"]
    assert set(api.__all__) == set(re.findall(r"^## `(\w+)`$", PAGES["python.md"], re.MULTILINE))
    assert "report(run_directory: Path" in PAGES["python.md"]


def test_every_key_of_the_report_is_in_the_schema():
    listed = {row[0].strip("`") for row in rows(PAGES["schema.md"])}
    kinds = msgspec.json.schema(Report)["$defs"]
    assert {key for kind in kinds.values() for key in kind.get("properties", {})} <= listed


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"type": "number"}, "number"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string, null"),
        ({"$ref": "#/$defs/StageMs"}, "[StageMs](#stagems)"),
        ({"enum": ["high", "low"]}, '`"high"`, `"low"`'),
        ({"type": "array", "items": {"type": "integer"}}, "list of (integer)"),
        ({"type": "array"}, "list"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "object of (integer)"),
        ({}, "any"),
    ],
)
def test_types_are_said_in_words(told, words):
    assert generated.type_of(told) == words


def test_figures_of_the_report_that_is_read_are_those_of_the_report_that_is_shown(tmp_path):
    run = generated.example(tmp_path)
    assert run.report_html.read_text().lower().startswith("<!doctype html>")
    recorded = {row[0]: re.sub(r"\s", " ", row[1]) for row in rows(run.summary_md.read_text())}
    told = {row[0]: row[1] for row in rows(WRITTEN["reading.md"]) if len(row) == 3}
    named = told.keys() & recorded.keys()
    assert len(named) == 7
    assert {name: told[name] for name in named} == {name: recorded[name] for name in named}


# --------------------------------------------------------------------------------------------------------- links


def anchors(page: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def links(page: str) -> list[str]:
    prose = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(r"\]\(([^)\s]+)\)", prose) + re.findall(r'(?:src|srcset)="([^"]+)"', prose)
    return [target for target in targets if not re.match(r"https?:", target)]


@pytest.mark.parametrize("page", sorted({**WRITTEN, **{k: v for k, v in PAGES.items() if k.endswith(".md")}}))
def test_links_between_pages_lead_somewhere(page):
    texts = {**WRITTEN, **PAGES}
    for target in links(texts[page]):
        place, _, anchor = target.partition("#")
        where = str((Path("/") / Path(page).parent / place).resolve().relative_to("/")) if place else page
        assert where in texts or where == "example.html" or (DOCS / where).is_file(), target
        if anchor and where in texts:
            assert anchor in anchors(texts[where]), target


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "benchmarks/README.md", "tests/data/h200/README.md"])
def test_links_of_other_files_lead_somewhere(page):
    for target in links((ROOT / page).read_text()):
        assert ((ROOT / page).parent / target.partition("#")[0]).exists(), target


def test_all_written_pages_are_in_the_navigation():
    def pages(entries):
        for entry in entries:
            for value in entry.values() if isinstance(entry, dict) else [entry]:
                yield from pages(value) if isinstance(value, list) else [value]

    shown = set(pages(CONFIG["nav"]))
    assert shown - PAGES.keys() == WRITTEN.keys() - set(CONFIG["exclude_docs"].split())
    assert shown & PAGES.keys() == {path for path in PAGES if path.endswith(".md") and "/" not in path} | {
        "rules/index.md"
    }


def test_the_pages_load_nothing_from_the_network():
    assert CONFIG["theme"]["font"] is False
    assert not {"extra_css", "extra_javascript"} & CONFIG.keys()
    assert not any(
        "https://" in target for page in WRITTEN.values() for target in re.findall(r"!\[[^\]]*\]\(([^)]+)", page)
    )


# ------------------------------------------------------------------------------------------------------ article

STATEMENTS = yaml.safe_load((ROOT / "benchmarks" / "article.yaml").read_text())
LINKS = [(each["says"], link) for each in STATEMENTS for link in each["covers"]]


def test_the_article_has_its_causes_solutions_and_pitfalls():
    kinds = [each["kind"] for each in STATEMENTS]
    assert {kind: kinds.count(kind) for kind in kinds} == {"cause": 6, "solution": 3, "pitfall": 10}


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The recorded report, as a page and as data."""
    run = generated.example(tmp_path_factory.mktemp("shown"))
    return run.report_html.read_text(), api.load(run.path)


@pytest.mark.parametrize(("says", "link"), LINKS, ids=[f"{link}-{number}" for number, (_, link) in enumerate(LINKS)])
def test_what_covers_a_statement_is_there(says, link, shown):
    page, report = shown
    kind, _, name = link.partition(":")
    there = {
        "rule": {each.name for each in rules.catalogue()},
        "report": set(re.findall(r'id="([\w-]+)"', page)),
        "fact": {fact.name for fact in report.facts},
    }
    assert name in there[kind]
    (row,) = [row for row in rows(PAGES["article.md"]) if row[0] == says]
    assert name in row[2]


def result(ratio: float, found: dict[str, str] | None, interval: list[float] | None = None) -> dict:
    """Figures as benchmarks/article.py keeps them, all ratios alike."""
    one = {"ratio": ratio, "ci95": interval}
    ways = {"synchronised": one, "over_a_window": one}
    return {
        "machine": "a machine",
        "date": "2026-01-02",
        "rounds": 3,
        "scenario_1": {"by_the_articles_clock": one, "by_a_clock_around_all": one},
        "three_way": {"pin_memory": ways, "pin_memory and non_blocking": ways},
        **dict.fromkeys(("scenario_3", "optimal", "threads"), one),
        "statements": [{"found": found}, {"found": found and {}}],
    }


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Results of two machines, of one of them a later and an earlier one."""
    folder = tmp_path / "benchmarks" / "results"
    folder.mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    for name in ("docs/article-text.txt", "benchmarks/article.yaml"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    results = {
        "cpu-2026-01-02": result(1.5, {"cpu_bound": "ruled_out"}, [1.25, 1.8]),
        "cpu-2026-01-01": result(9.0, None),
        "h200-2026-01-01": result(2.0, None),
    }
    for name, made in results.items():
        (folder / f"article-{name}.json").write_text(json.dumps(made))
    monkeypatch.setattr(generated, "ROOT", tmp_path)


def test_the_article_shows_the_latest_figures_of_each_machine(kept):
    shown = rows(generated.article_page())
    assert ["how many times as fast", "H200 (3 rounds)", "CPU (3 rounds)"] in shown
    assert [row[1:] for row in shown if row[0] in generated.RATIOS] == [["2.00", "1.50 (1.25-1.80)"]] * 9
    (bound,) = [row[2] for row in shown if "[`cpu_bound`]" in row[-1]]
    assert bound == "[`cpu_bound`](rules/cpu_bound.md) (CPU: ruled out), [`io_bound`](rules/io_bound.md)"
    assert "CPU: a machine, 2026-01-02." in generated.article_page()
