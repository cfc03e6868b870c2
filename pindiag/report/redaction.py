"""The report as it may leave the machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pindiag.model import Report, RunSpec
from pindiag.redact import Redactor

REDACTION = "redaction"
"""Key of `environment` that says what was done."""
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
    ]
)
"""Fields whose words are pindiag's own: a user called "measured" must not change them."""


def redact_report(report: Report, spec: RunSpec, *, show_paths: bool = False) -> Report:
    """Take home, user, host, addresses, absolute paths and secrets out of all texts.

    Args:
        report: as the analysis and the rules made it.
        spec: what was asked; its working directory and arguments tell what to look for.
        show_paths: leave names, addresses and paths; secrets go in any case.
    """
    redactor = Redactor.here(spec.cwd, spec.args, paths=not show_paths)
    plain = _walk(msgspec.to_builtins(report), redactor)
    plain["environment"][REDACTION] = "off (--show-paths)" if show_paths else "on"
    return msgspec.convert(plain, Report)


def _walk(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_walk(item, redact) for item in value]
    if isinstance(value, dict):
        return {key: item if _is_ours(key, value) else _walk(item, redact) for key, item in value.items()}
    return value


def _is_ours(key: str, parent: dict[str, Any]) -> bool:
    # "id" and "name" stand in trials, blocks and facts, whose words are ours as well.
    return key in _OURS or (key in ("id", "name") and "value" not in parent) or (key == "name" and "trial" in parent)
