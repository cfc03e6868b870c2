"""The report as it may leave the machine."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from pindiag.model import Report, RunSpec
from pindiag.redact import Redactor

T = TypeVar("T")

REDACTION = "redaction"
"""Key of `environment` that says what was done."""
_LONGEST_LINE = 20_000
_LONG_LINE = re.compile(rf"[^\n]{{{_LONGEST_LINE + 1},}}")
"""What no reader reads to its end; redaction would take a minute for ten megabytes of it."""
_OURS = frozenset(
    [
        "schema_version",
        "primary_cause",
        "confidence",
        "rule",
        "cause",
        "status",
        "severity",
        "unit",
        "kind",
        "isolation",
        "baseline",
        "trial",
        "trials",
        "blocks",
        "purpose",
        "frontier",
        "firmness",
        "compute_only",
        "host_batch",
        "loader_only",
        "consequence_of",
        "ablation",
        "tweak",
        "machine",
        "lane",
        "timeline_trial",
        "timeline_waits",
    ]
)
"""Fields whose words are pindiag's own: a user called "measured" must not change them."""


_SENTENCES = frozenset(
    [
        *("headline", "lead", "possible", "title", "explanation", "summary", "trade_off", "experiment"),
        *("source", "name", "key", "rule_of_thumb", "measured", "notes", "why", "timeline_source", "gpu_numa_node"),
        # Code is no sentence, but a patch in which a variable is masked fits no file.
        *("patch", "snippet"),
    ]
)
"""Fields that hold sentences of pindiag's, as all reasons are: a host called "worker" must not mask the word there."""
_QUOTATION = re.compile(r"(?<![\w.])(?:\w+\.)*[A-Z]\w*: |\[Errno \d+\]")
"""Where a sentence of pindiag's begins to quote an exception: from there on it is text of others."""
_QUOTING = frozenset(["script_error", "worker_crash"])
"""Causes of which the verdict quotes what the script said."""


def redact_report(report: Report, spec: RunSpec, *, show_paths: bool = False) -> Report:
    """Take home, user, host, addresses, absolute paths and secrets out of all texts, and say so.

    Args:
        report: as the analysis and the rules made it.
        spec: what was asked; its working directory, arguments and who asked tell what to look for.
        show_paths: leave names, addresses and paths; secrets go in any case.
    """
    state = "off (--show-paths)" if show_paths else "on"
    redacted = redact(report, [spec], show_paths=show_paths)
    return msgspec.structs.replace(redacted, environment={**redacted.environment, REDACTION: state})


def redact(value: T, specs: Iterable[RunSpec | None], *, show_paths: bool = False) -> T:
    """The same for anything else that leaves the machine: a text, or a struct of pindiag's.

    Args:
        value: what is to be shown.
        specs: runs whose places, arguments and people it may speak of.
        show_paths: leave names, addresses and paths; secrets go in any case.
    """
    redactors = [one for spec in specs if spec is not None for one in _redactors(spec, paths=not show_paths)]
    redactors = redactors or [Redactor.here("", paths=not show_paths)]
    sentences = [dataclasses.replace(one, ours=True) for one in redactors]
    theirs = functools.lru_cache(maxsize=None)(_all(redactors))
    ours = functools.lru_cache(maxsize=None)(_but_quotations(_all(sentences), theirs))
    return msgspec.convert(_walk(msgspec.to_builtins(value), theirs, ours), type(value))


def _redactors(spec: RunSpec, *, paths: bool) -> list[Redactor]:
    """For whoever makes the report, and for whoever ran it where that was somebody else."""
    here = Redactor.here(spec.cwd, spec.args, paths=paths)
    there = dataclasses.replace(here, home=spec.home, user=spec.user, host=spec.host)
    return [here] if there == here else [there, here]


def _all(redactors: Sequence[Redactor]) -> Callable[[str], str]:
    def hide(text: str) -> str:
        text = _LONG_LINE.sub(_cut, text)
        for redactor in redactors:
            text = redactor(text)
        return text

    return hide


def _but_quotations(ours: Callable[[str], str], theirs: Callable[[str], str]) -> Callable[[str], str]:
    def hide(text: str) -> str:
        text = ours(text)
        quoted = _QUOTATION.search(text)
        return text if quoted is None else text[: quoted.start()] + theirs(text[quoted.start() :])

    return hide


def _cut(line: re.Match[str]) -> str:
    """The head of a long line without its last word, which may be a part of a secret that is told by its end."""
    head = line[0][:_LONGEST_LINE].rpartition(" ")[0]
    return f"{head} … cut, {len(line[0]) - len(head)} characters …"


def _walk(value: Any, theirs: Callable[[str], str], ours: Callable[[str], str]) -> Any:
    """Text of others goes through `theirs`, sentences of pindiag's through `ours`."""
    if isinstance(value, str):
        return theirs(value)
    if isinstance(value, list):
        return [_walk(item, theirs, ours) for item in value]
    if isinstance(value, dict):
        return {
            key: item if _is_ours(key, item, value) else _walk(item, ours if _is_said(key, value) else theirs, ours)
            for key, item in value.items()
        }
    return value


def _is_said(key: str, parent: dict[str, Any]) -> bool:
    """Whether a field holds a sentence of pindiag's; one that quotes the script does not count."""
    if parent.get("primary_cause") in _QUOTING or "calls" in parent:
        return False
    if key.endswith("reason"):
        # Why something failed may be what the script said, in words that look like no exception.
        return not (parent.get("status") == "failed" and ":" in str(parent[key]))
    if key == "value":
        return parent.get("name") != "target_error"
    return key in _SENTENCES


def _is_ours(key: str, item: Any, parent: dict[str, Any]) -> bool:
    """Whether a word, or a list of words, is pindiag's own; what holds fields of its own is looked into."""
    if isinstance(item, dict) or (isinstance(item, list) and any(isinstance(one, dict) for one in item)):
        return False
    # "id" and "name" stand in trials, blocks and facts, whose words are ours as well; a kernel's name is its author's.
    named = key in ("id", "name") and "value" not in parent and "calls" not in parent
    return key in _OURS or named or (key == "name" and "trial" in parent)
