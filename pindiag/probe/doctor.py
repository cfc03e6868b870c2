"""What `pindiag doctor` measures under the interpreter that trains: one JSON line a part on standard output.

The parent starts it with the parts that are left; each is announced before it begins, so that the parent knows which
one a crash or a hang belongs to.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

HAND_OFF = "hand_off "


class Unavailable(Exception):
    """Something cannot be measured here; the message is the whole reason."""


def main(parts: Sequence[str]) -> None:
    """Do the parts, in their order; what one of them raises is its reason."""
    for part in parts:
        _tell({"part": part, "began": True})
        try:
            _tell({"part": part, "value": _doer(part)()})
        except Exception as error:
            _tell({"part": part, "reason": reason(error)})
    sys.stdout.flush()
    os._exit(0)  # torch's own shutdown has nothing to add, and can hang


def reason(error: Exception) -> str:
    """The line of an exception that says most."""
    if isinstance(error, ModuleNotFoundError) and error.name == "torch":
        return "the interpreter has no torch"
    if isinstance(error, Unavailable):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _doer(part: str) -> Callable[[], dict[str, Any]]:
    # Parts import torch inside themselves: an interpreter without it gives each part that reason.
    if part == "torch":
        from .doctor_torch import describe

        return describe
    if part == "copies":
        from .doctor_copies import measure

        return measure
    from .doctor_hand_off import hand_off

    return lambda: hand_off(part.removeprefix(HAND_OFF))


def _tell(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
