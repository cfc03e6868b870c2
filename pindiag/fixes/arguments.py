"""Keyword arguments of a call: replace, add, remove, with the layout and comments of the user's own lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import libcst as cst

Value = bool | int | str | None
"""An argument to write; a string is an expression."""
Plain = cst.Dict | cst.Call
"""A dict in braces, or a call of `dict` with keywords."""


def expression(value: Value) -> cst.BaseExpression:
    """The code of a value."""
    return cst.parse_expression(value if isinstance(value, str) else repr(value))


def code(node: cst.CSTNode) -> str:
    """A node as the user wrote it."""
    return cst.Module(body=[]).code_for_node(node)


def is_literal(node: cst.BaseExpression) -> bool:
    """Whether a value stands there as itself, so that another can take its place."""
    if isinstance(node, cst.Name):
        return node.value in ("True", "False", "None")
    return isinstance(node, (cst.Integer, cst.Float, cst.SimpleString))


def keyword(call: cst.Call, name: str) -> int | None:
    """Where a keyword stands among the arguments."""
    found = (at for at, arg in enumerate(call.args) if arg.keyword is not None and arg.keyword.value == name)
    return next(found, None)


def with_value(call: cst.Call, at: int, value: Value) -> cst.Call:
    """The call with another value at an argument's place."""
    args = list(call.args)
    args[at] = args[at].with_changes(value=expression(value))
    return call.with_changes(args=args)


def with_keyword(call: cst.Call, name: str, value: Value) -> cst.Call:
    """The call with one more keyword at its end."""
    new = cst.Arg(
        keyword=cst.Name(name),
        value=expression(value),
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )
    if not call.args:
        return call.with_changes(args=[new])
    *before, last = call.args
    separator = before[-1].comma if before else None
    if isinstance(separator, cst.Comma):
        between = separator.whitespace_after
    else:
        between = call.whitespace_before_args if _is_open(call.whitespace_before_args) else cst.SimpleWhitespace(" ")
    if isinstance(last.comma, cst.Comma):
        end = last.comma.whitespace_after
        new = new.with_changes(comma=last.comma.with_changes(whitespace_after=_without_comment(end)))
    else:
        end = last.whitespace_after_arg
        new = new.with_changes(whitespace_after_arg=_without_comment(end))
    joined = cst.Comma(whitespace_after=_joined(end, between, call.whitespace_before_args))
    last = last.with_changes(comma=joined, whitespace_after_arg=cst.SimpleWhitespace(""))
    return call.with_changes(args=[*before, last, new])


def without(call: cst.Call, name: str) -> cst.Call:
    """The call without a keyword; its comment goes with it."""
    at = keyword(call, name)
    if at is None:
        return call
    args = list(call.args)
    gone = args.pop(at)
    if at == len(args) and args:
        args[-1] = args[-1].with_changes(comma=gone.comma, whitespace_after_arg=gone.whitespace_after_arg)
    return call.with_changes(args=args)


def is_plain(node: cst.CSTNode) -> TypeGuard[Plain]:
    """Whether a dict stands there with all its keys: in braces, or as `dict(key=value)`."""
    if isinstance(node, cst.Dict):
        return all(isinstance(each, cst.DictElement) for each in node.elements)
    if not isinstance(node, cst.Call) or code(node.func) != "dict":
        return False
    return all(arg.keyword is not None for arg in node.args)


def held(plain: Plain, name: str) -> cst.BaseExpression | None:
    """The value of a string key."""
    at = _key(plain, name)
    if at is None:
        return None
    return plain.args[at].value if isinstance(plain, cst.Call) else plain.elements[at].value


def with_held(plain: Plain, name: str, value: Value) -> Plain:
    """The dict with another value for a key that it has."""
    at = _key(plain, name)
    if at is None:
        return plain
    if isinstance(plain, cst.Call):
        return with_value(plain, at, value)
    elements: list[cst.BaseDictElement] = list(plain.elements)
    elements[at] = elements[at].with_changes(value=expression(value))
    return plain.with_changes(elements=elements)


def without_held(plain: Plain, name: str) -> Plain:
    """The dict without a key."""
    at = _key(plain, name)
    if at is None or isinstance(plain, cst.Call):
        return without(plain, name) if isinstance(plain, cst.Call) else plain
    elements: list[cst.BaseDictElement] = list(plain.elements)
    gone = elements.pop(at)
    if at == len(elements) and elements:
        elements[-1] = elements[-1].with_changes(comma=gone.comma)
    return plain.with_changes(elements=elements)


def names(args: Sequence[cst.Arg]) -> list[str]:
    """Names of the keywords of a call."""
    return [arg.keyword.value for arg in args if arg.keyword is not None]


def _key(plain: Plain, name: str) -> int | None:
    if isinstance(plain, cst.Call):
        return keyword(plain, name)
    keys = (text(each.key) if isinstance(each, cst.DictElement) else None for each in plain.elements)
    return next((at for at, key in enumerate(keys) if key == name), None)


def text(node: cst.BaseExpression) -> str | None:
    """The text of a string literal; None: it is none."""
    if isinstance(node, cst.SimpleString):
        value = node.evaluated_value
        return value if isinstance(value, str) else None
    return None


def _is_open(space: cst.BaseParenthesizableWhitespace) -> bool:
    return isinstance(space, cst.ParenthesizedWhitespace)


def _without_comment(space: cst.BaseParenthesizableWhitespace) -> cst.BaseParenthesizableWhitespace:
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return space
    return space.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[])


def _joined(
    end: cst.BaseParenthesizableWhitespace,
    between: cst.BaseParenthesizableWhitespace,
    opening: cst.BaseParenthesizableWhitespace,
) -> cst.BaseParenthesizableWhitespace:
    """What stands between the formerly last argument and the new one; the former's comment stays with it."""
    if not isinstance(end, cst.ParenthesizedWhitespace):
        return _plain(between)
    if isinstance(between, cst.ParenthesizedWhitespace):
        line = between
    elif end.first_line.comment is not None and isinstance(opening, cst.ParenthesizedWhitespace):
        line = opening
    elif end.first_line.comment is not None:
        line = end
    else:
        return between
    return line.with_changes(first_line=end.first_line, empty_lines=end.empty_lines)


def _plain(between: cst.BaseParenthesizableWhitespace) -> cst.BaseParenthesizableWhitespace:
    if isinstance(between, cst.ParenthesizedWhitespace):
        return _without_comment(between)
    return between if between.value else cst.SimpleWhitespace(" ")  # type: ignore[attr-defined]
