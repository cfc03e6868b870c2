"""The only place that prints: payload to standard output, everything else to standard error."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.table import Table

    from pindiag.api import Step
    from pindiag.api.applying import Proposal
    from pindiag.model import Finding, Fix, Report
    from pindiag.report.doctor import Section

_CONTROL = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: "␡"}
"""What others wrote must not steer the terminal."""
MARKS = {"confirmed": "●", "suspected": "◐", "not_settled": "○", "ruled_out": "⊘", "not_applicable": "–", "error": "!"}


def _console(*, stderr: bool) -> Console:
    """As `--color` says; without it rich knows terminals, NO_COLOR and FORCE_COLOR."""
    import click
    from rich.console import Console

    context = click.get_current_context(silent=True)
    color = None if context is None else context.color
    if color is None:
        return Console(stderr=stderr, highlight=False, soft_wrap=True)
    system: Literal["standard"] | None = "standard" if color else None
    return Console(
        stderr=stderr, highlight=False, soft_wrap=True, force_terminal=color, no_color=not color, color_system=system
    )


def error(cause: str, hint: str = "", code: str = "") -> None:
    """Print an error in one sentence, what to do in another, and the code under which the documentation has it."""
    text = cause if cause.endswith((".", "?", "!")) else f"{cause}."
    told = " ".join(filter(None, (text, hint, code and f"({code})")))
    sys.stderr.write(f"pindiag: {told}".translate(_CONTROL) + "\n")


def crash(failure: Exception) -> None:
    """Print that pindiag itself failed; the traceback only where PINDIAG_DEBUG is set."""
    from pindiag.errors import PindiagError

    error(
        f"pindiag itself failed: {type(failure).__name__}: {failure}",
        "What was measured is kept: `pindiag report RUN_DIR`. Set PINDIAG_DEBUG=1 to see where it failed.",
        PindiagError.code,
    )
    if os.environ.get("PINDIAG_DEBUG"):
        traceback.print_exception(failure)


def note(text: str) -> None:
    """Print something beside what the command was asked for."""
    sys.stderr.write(f"pindiag: {text}\n".translate(_CONTROL))


def payload(text: str) -> None:
    """Print what the command was asked for."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table."""
    _console(stderr=False).print(_table(header, rows))


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], show_header: bool = True) -> Table:
    from rich.table import Table
    from rich.text import Text

    shown = Table(*header, box=None, header_style="bold", pad_edge=False, show_header=show_header)
    for column in shown.columns:
        # A path that is cut is none.
        column.overflow = "fold"
    for row in rows:
        shown.add_row(*(Text(cell.translate(_CONTROL)) for cell in row))
    return shown


def write(place: str | Path, text: str) -> None:
    """Write a file that was asked for; "-" is standard output.

    Raises:
        OutputRefused: it cannot be written.
    """
    from pindiag.errors import OutputRefused

    if place == "-":
        payload(text)
        return
    try:
        Path(place).write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputRefused(f"{place} cannot be written: {error.strerror}.", "Name another file.") from error


def sections(shown: Sequence[Section], *, stderr: bool = False) -> None:
    """Print titled tables and sentences, one under another."""
    console = _console(stderr=stderr)
    for number, section in enumerate(shown):
        _say(console, f"{chr(10) * (number > 0)}{section.title}", "bold")
        if section.rows:
            console.print(_table(section.header or ("",) * len(section.rows[0]), section.rows, bool(section.header)))
        for note in section.notes:
            _say(console, note)


def verdict(report: Report, run_directory: Path, *, quiet: bool, json_path: str | None, of_patch: bool = False) -> None:
    """Print what was found and where the report lies; report.json goes to `json_path` or standard output.

    Args:
        report: what was found.
        run_directory: where it lies.
        quiet: one line.
        json_path: a file, "-" or None.
        of_patch: the patch was what was to be measured.
    """
    to_stdout = json_path == "-"
    content = (run_directory / "report.json").read_text(encoding="utf-8") if json_path else ""
    if json_path and not to_stdout:
        write(json_path, content)
    if report.target.error and not quiet:
        sys.stderr.write(report.target.error.rstrip() + "\n")
    console = _console(stderr=to_stdout)
    if quiet:
        _say(console, _patch_line(report) if of_patch else report.verdict.headline)
    else:
        _print_findings(console, report)
        if report.patch_verification is not None:
            _say(console, _patch_line(report), "bold" if of_patch else "")
        _say(console, f"Report: {run_directory / 'report.html'}")
    if to_stdout:
        payload(content)


def _patch_line(report: Report) -> str:
    from pindiag.report.conclusions import patched

    return "" if report.patch_verification is None else f"{patched(report.patch_verification)}."


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(text.translate(_CONTROL), style=style, markup=False)


def _print_findings(console: Console, report: Report) -> None:
    _say(console, report.verdict.headline, "bold")
    fix = _first_fix(report)
    if fix is not None:
        _print_fix(console, fix)
    for finding in _worth_a_line(report.findings):
        _say(console, f"  {MARKS[finding.status]} {finding.status.replace('_', ' ')}: {finding.title}")


def _first_fix(report: Report) -> Fix | None:
    """The change that the report shows; else one that was measured and is not safe."""
    from pindiag.report.sections.verdict import main_fix

    primary = next((one for one in report.findings if one.cause == report.verdict.primary_cause), None)
    tried = [fix for fix in (primary.fixes if primary else []) if fix.effect and fix.effect.kind != "predicted"]
    return main_fix(report) or next(iter(tried), None)


def _print_fix(console: Console, fix: Fix) -> None:
    unsafe = f" Not recommended: {fix.safety.reason}" if fix.safety.status == "failed" else ""
    _say(console, f"{fix.summary}{unsafe}")
    _print_diff(console, fix.patch, fix.snippet, "    ")


def _print_diff(console: Console, diff: str | None, by_hand: str | None, indent: str = "") -> None:
    for line in (diff or "").splitlines():
        style = {"+": "blue", "-": "dim"}.get(line[:1], "")
        _say(console, f"{indent}{line}", style)
    for line in (by_hand or "").splitlines():
        _say(console, f"  To do by hand: {line}")


def proposal(shown: Proposal) -> None:
    """Print what is to be changed, and what is left to the user."""
    console = _console(stderr=False)
    _say(console, shown.summary, "bold")
    _print_diff(console, shown.diff, shown.by_hand)


def agreed(question: str) -> bool:
    """Ask; no answer is no.

    Raises:
        UsageError: nobody is there to be asked.
    """
    import click

    from pindiag.errors import UsageError

    if not sys.stdin.isatty():
        raise UsageError("Nobody is there to be asked.", "No file was changed; say --yes.")
    return click.confirm(question, err=True)


def _worth_a_line(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.status in ("confirmed", "suspected", "not_settled")]


def clock(seconds: float) -> str:
    """Seconds as people say them: 45 s, 2 min 05 s."""
    whole = max(0, round(seconds))
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02d} s"


class Progress:
    """What is measured now, the best so far, and the time left, on standard error.

    On a terminal one line that moves, cut to its width; elsewhere, in a log, one line a round or launch. What the
    target prints goes to target.log, so that nothing comes between.
    """

    def __init__(self, *, quiet: bool, verbose: bool) -> None:
        self.quiet = quiet
        self.verbose = verbose
        self._bar: Bar | None = None
        self._said = ""

    def __enter__(self) -> Progress:
        if not self.quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            from rich.progress import BarColumn, SpinnerColumn, TextColumn
            from rich.progress import Progress as Bar
            from rich.table import Column

            self._bar = Bar(
                SpinnerColumn(),
                BarColumn(bar_width=20),
                TextColumn("{task.fields[left]}", markup=False, table_column=Column(no_wrap=True)),
                TextColumn(
                    "{task.description}",
                    markup=False,
                    table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
                ),
                console=_console(stderr=True),
                transient=True,
                expand=True,
                # Drawing shares the CPUs with what is measured.
                refresh_per_second=4,
            )
            self._bar.add_task("starting", total=None, left="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def step(self, step: Step) -> None:
        """A launch or a block begins."""
        if self.quiet:
            return
        left = "" if step.seconds_left is None else f"{clock(step.seconds_left)} left"
        text = step.now if step.best is None else f"{step.now} · best so far {step.best}"
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=text, completed=step.done, total=step.total, left=left)
            return
        begun = step.now.partition(":")[0]
        if begun != self._said:
            note(f"[{step.done + 1}/{step.total}] {text}{', ' * bool(left)}{left}")
        self._said = begun

    def note(self, text: str) -> None:
        """A detail that only `-v` shows."""
        if self.verbose:
            self.say(text)

    def say(self, text: str) -> None:
        """Something that matters to everybody who did not ask for quiet."""
        if self.quiet:
            return
        if self._bar is None:
            note(text)
        else:
            self._bar.console.print(text.translate(_CONTROL), markup=False)
