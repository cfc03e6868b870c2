"""What all benchmarks have in common on the command line: --quick, and --json PATH or - for standard output."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


def parser(doc: str | None, *, quick: str) -> argparse.ArgumentParser:
    """A parser with the two options; `quick` says what --quick leaves out."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--json", default="-", metavar="PATH|-", help="where the figures go; - is standard output")
    made.add_argument("--quick", action="store_true", help=quick)
    return made


def at_dashes(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """What stands before a lone -- and what after it."""
    at = words.index("--") if "--" in words else len(words)
    return list(words[:at]), list(words[at + 1 :])


def add_merge(to: argparse.ArgumentParser) -> None:
    """Let a benchmark put together what several of its processes wrote."""
    words = "measure nothing, and print the cases of these results as one"
    to.add_argument("--merge", nargs="+", type=Path, default=[], metavar="PATH", help=words)


def cases_of(results: Sequence[Path]) -> list[dict[str, object]]:
    """The cases of several results, in order."""
    return [case for path in results for case in json.loads(path.read_text())["cases"]]


def write(figures: Mapping[str, object], where: str) -> None:
    """Write the figures as one line of JSON."""
    text = json.dumps(figures) + "\n"
    if where == "-":
        sys.stdout.write(text)
    else:
        Path(where).write_text(text)


@contextmanager
def kept(where: str) -> Iterator[dict[str, object]]:
    """Figures to be filled in, written however the block ends; where it is cut short, "cut_short" says by what.

    A termination ends it in order, as Ctrl-C does.
    """
    figures: dict[str, object] = {}
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield figures
    except BaseException as ended:
        figures["cut_short"] = type(ended).__name__
        raise
    finally:
        write(figures, where)
