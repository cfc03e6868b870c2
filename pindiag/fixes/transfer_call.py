"""Edits of `.to(...)` and `.cuda(...)` calls."""

from __future__ import annotations

import libcst as cst

from pindiag.fixes import arguments


def is_transfer(call: cst.Call) -> bool:
    """Whether a call may copy to a device; copies to the host stay as they are."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in ("to", "cuda"):
        return False
    target = arguments.code(call.args[0].value) if call.args else ""
    return "cpu" not in target


def set_non_blocking(call: cst.Call, value: bool) -> tuple[cst.Call, str | None]:
    """The call with `non_blocking` set; otherwise as it was, with the reason why it cannot be."""
    at = _place(call)
    if at is not None:
        old = call.args[at].value
        if arguments.code(old) == repr(value):
            return call, None
        if not arguments.is_literal(old):
            return call, f"it comes from `{arguments.code(old)}`; change it there"
        return arguments.with_value(call, at, value), None
    if any(arg.star for arg in call.args):
        return call, "arguments are unpacked into the call"
    return (arguments.with_keyword(call, "non_blocking", value) if value else call), None


def _place(call: cst.Call) -> int | None:
    """Where `non_blocking` stands: by keyword, or as the first plain bool behind the device."""
    at = arguments.keyword(call, "non_blocking")
    if at is not None:
        return at
    for position, arg in enumerate(call.args[1:], start=1):
        if arg.keyword is None and not arg.star and arguments.code(arg.value) in ("True", "False"):
            return position
    return None
