"""Edits of a call that takes a loader's arguments."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from pindiag.fixes import arguments
from pindiag.fixes.arguments import Value
from pindiag.fixes.callee import Callee, called


class CallEditor:
    """Applies changes to one call; `refused` says which could not be applied, and why.

    Args:
        callee: what is called.
        changes: new values, by its own keywords.
        literals: dict literals by the name that holds them.
    """

    def __init__(self, callee: Callee, changes: Mapping[str, Value], literals: Mapping[str, cst.Dict]) -> None:
        self.callee = callee
        self.changes = changes
        self.literals = literals
        """Dict literals by the name they are unpacked from, where nothing else touches that name."""
        self.edited_literals: dict[str, cst.Dict] = {}
        self.refused: dict[str, str] = {}

    def edit(self, call: cst.Call) -> cst.Call:
        """The call under all changes that can be applied."""
        for name, value in self.changes.items():
            call = self._change(call, name, value)
        workers = self.callee.keywords["num_workers"]
        if self.changes.get(workers) == 0 and workers not in self.refused:
            for name in self.callee.only_with_workers:
                call = self._remove(call, name)
        return call

    def _change(self, call: cst.Call, name: str, value: Value) -> cst.Call:
        at = self._place(call, name)
        if at is not None:
            return self._replace(call, at, name, value)
        for unpacked, literal in self._unpacked(call):
            if literal is None:
                self.refused[name] = f"it may come from `{unpacked}`, which is not a plain dict here"
                return call
            if arguments.element(literal, name) is not None:
                return self._store(call, unpacked, self._with_element(literal, name, value))
        if any(arg.star == "*" for arg in call.args):
            self.refused[name] = "positional arguments are unpacked from a sequence"
            return call
        if name in self.callee.defaults and self.callee.defaults[name] == value:
            return call
        if not self.callee.takes_all(call):
            self.refused[name] = f"`{called(call)}` may not take it"
            return call
        return arguments.with_keyword(call, name, value)

    def _place(self, call: cst.Call, name: str) -> int | None:
        at = arguments.keyword(call, name)
        if at is not None or name not in self.callee.positional or not self.callee.takes_all(call):
            return at
        position = self.callee.positional.index(name)
        plain = [arg for arg in call.args if arg.keyword is None and not arg.star]
        starred = any(arg.star == "*" for arg in call.args[: position + 1])
        return position if position < len(plain) and not starred else None

    def _replace(self, call: cst.Call, at: int, name: str, value: Value) -> cst.Call:
        old = call.args[at].value
        if _same(old, value):
            return call
        if not arguments.is_literal(old):
            self.refused[name] = _comes_from(old)
            return call
        if value is None and call.args[at].keyword is not None:
            return arguments.without(call, name)
        return arguments.with_value(call, at, value)

    def _with_element(self, literal: cst.Dict, name: str, value: Value) -> cst.Dict:
        at = arguments.element(literal, name)
        old = None if at is None else literal.elements[at].value
        if at is None or old is None or _same(old, value):
            return literal
        if not arguments.is_literal(old):
            self.refused[name] = _comes_from(old)
            return literal
        return arguments.with_element(literal, at, value)

    def _remove(self, call: cst.Call, name: str) -> cst.Call:
        call = arguments.without(call, name)
        for unpacked, literal in self._unpacked(call):
            if literal is not None and arguments.element(literal, name) is not None:
                call = self._store(call, unpacked, arguments.without_element(literal, name))
        return call

    def _unpacked(self, call: cst.Call) -> list[tuple[str, cst.Dict | None]]:
        """What is unpacked into the call by `**`, with its dict literal where that is known."""
        found: list[tuple[str, cst.Dict | None]] = []
        for arg in call.args:
            if arg.star != "**":
                continue
            name = arguments.code(arg.value)
            if isinstance(arg.value, cst.Dict):
                found.append((name, arg.value))
            else:
                found.append((name, self.edited_literals.get(name, self.literals.get(name))))
        return found

    def _store(self, call: cst.Call, unpacked: str, literal: cst.Dict) -> cst.Call:
        """Keep an edited dict: in the call where it stands there, else for the line that assigns it."""
        args = list(call.args)
        for at, arg in enumerate(args):
            if arg.star == "**" and isinstance(arg.value, cst.Dict) and arguments.code(arg.value) == unpacked:
                args[at] = arg.with_changes(value=literal)
                return call.with_changes(args=args)
        self.edited_literals[unpacked] = literal
        return call


def _same(old: cst.BaseExpression, value: Value) -> bool:
    return arguments.code(old) == arguments.code(arguments.expression(value))


def _comes_from(old: cst.BaseExpression) -> str:
    return f"it comes from `{arguments.code(old)}`; change it there"
