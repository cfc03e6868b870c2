"""What a run was asked, as a command that asks it again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from pindiag.model import RunSpec
from pindiag.redact import hide_arguments
from pindiag.report import about
from pindiag.report.redaction import redact

_DEFAULT_BUDGET_S = 300.0
_DEFAULT_ROUNDS = 6
_DEFAULT_WAIT_S = 600.0
_DEFAULT_KEEP_CAP_BYTES = 1 << 30


def command(asked: RunSpec, *, show_paths: bool = False) -> str:
    """The command line, redacted; what came from a settings file or the environment stands in it as well.

    Args:
        asked: run.json as it is.
        show_paths: leave names, addresses and paths; secrets go in any case.
    """
    spec = redact(asked, [asked], show_paths=show_paths)
    args = redact(hide_arguments(asked.args), [asked], show_paths=show_paths)
    target = ["-m", about.target_name(spec)] if spec.module else [spec.target]
    words = ["pindiag", "run", *target, *_options(spec), *(["--", *args] if args else [])]
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    # A line break would end the line of a ticket that holds it.
    return shlex.quote(word.replace("\n", " ").replace("\r", " "))


def _options(spec: RunSpec) -> Iterator[str]:
    flags = {
        "--sweep": spec.sweep and spec.batch_sizes is None,
        "--no-verify": not spec.verify,
        "--fresh": spec.fresh,
        "--exhaustive": spec.exhaustive,
    }
    yield from (flag for flag, given in flags.items() if given)
    if spec.batch_sizes is not None:
        yield "=".join(["--sweep-batch-size", *filter(None, [",".join(map(str, spec.batch_sizes))])])
    values = {
        "--grid": spec.grid,
        "--budget": _unless(_DEFAULT_BUDGET_S, spec.budget_s, "s"),
        "--rounds": _unless(_DEFAULT_ROUNDS, spec.rounds),
        "--steps": spec.steps,
        "--seed": _unless(0, spec.seed),
        "--device": spec.device,
        "--loader": spec.loader,
        "--wait": _unless(_DEFAULT_WAIT_S, spec.wait_s, "s"),
        "--keep-cap": _unless(_DEFAULT_KEEP_CAP_BYTES, spec.keep_cap_bytes),
    }
    for option, value in values.items():
        if value is not None:
            yield from (option, str(value))


def _unless(usual: float, value: float, unit: str = "") -> str | None:
    return None if value == usual else f"{value:.10g}{unit}"
