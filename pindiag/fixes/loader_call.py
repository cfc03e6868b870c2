"""Edits of a call that takes a loader's arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import libcst as cst

from pindiag.fixes import arguments
from pindiag.fixes.arguments import Plain, Value
from pindiag.fixes.callee import Callee, called


class CallEditor:
    """Applies changes to one call; `refused` says which could not be applied, and why.

    Args:
        callee: what is called.
        changes: new values, by its own keywords.
        literals: plain dicts by the name that they are unpacked from, where nothing else touches that name.
        whence: says where a value comes from that does not stand in the call, and what to do there.
    """

    def __init__(
        self,
        callee: Callee,
        changes: Mapping[str, Value],
        literals: Mapping[str, Plain],
        whence: Callable[[cst.BaseExpression, Value], str],
    ) -> None:
        self.callee = callee
        self.changes = changes
        self.literals = literals
        self.whence = whence
        self.edited_literals: dict[str, Plain] = {}
        self.refused: dict[str, str] = {}

    def edit(self, call: cst.Call) -> cst.Call:
        """The call under all changes that can be applied."""
        workers = self.callee.keywords["num_workers"]
        for name in sorted(self.changes, key=lambda each: each != workers):
            if workers in self.refused and self._needs_workers(name):
                self.refused[name] = "it needs workers, and their number is left to you"
            else:
                call = self._change(call, name, self.changes[name])
        return self._without_workers(call, workers) if self.changes.get(workers) == 0 else call

    def _needs_workers(self, name: str) -> bool:
        return name in self.callee.only_with_workers and self.changes[name] != self.callee.defaults.get(name)

    def _without_workers(self, call: cst.Call, workers: str) -> cst.Call:
        """What is refused without workers goes with them; where these are left to the user, so is this."""
        for name in self.callee.only_with_workers:
            if workers not in self.refused:
                call = self._remove(call, name)
            elif self._says(call, name):
                self.refused[name] = "without workers it is refused or of no use"
        return call

    def _says(self, call: cst.Call, name: str) -> bool:
        held = [arguments.held(literal, name) for _, literal in self._unpacked(call) if literal is not None]
        at = arguments.keyword(call, name)
        values = [value for value in [*held, None if at is None else call.args[at].value] if value is not None]
        return any(not _same(value, self.callee.defaults.get(name)) for value in values)

    def _change(self, call: cst.Call, name: str, value: Value) -> cst.Call:
        at = self._place(call, name)
        if at is not None:
            return self._replace(call, at, name, value)
        for unpacked, literal in self._unpacked(call):
            if literal is None:
                self.refused[name] = f"it may come from `{unpacked}`, which is not a plain dict here"
                return call
            if arguments.held(literal, name) is not None:
                return self._store(call, unpacked, self._with_held(literal, name, value))
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
            self.refused[name] = self.whence(old, value)
            return call
        if value is None and call.args[at].keyword is not None:
            return arguments.without(call, name)
        return arguments.with_value(call, at, value)

    def _with_held(self, literal: Plain, name: str, value: Value) -> Plain:
        old = arguments.held(literal, name)
        if old is None or _same(old, value):
            return literal
        if not arguments.is_literal(old):
            self.refused[name] = self.whence(old, value)
            return literal
        return arguments.with_held(literal, name, value)

    def _remove(self, call: cst.Call, name: str) -> cst.Call:
        call = arguments.without(call, name)
        for unpacked, literal in self._unpacked(call):
            if literal is not None and arguments.held(literal, name) is not None:
                call = self._store(call, unpacked, arguments.without_held(literal, name))
        return call

    def _unpacked(self, call: cst.Call) -> list[tuple[str, Plain | None]]:
        """What is unpacked into the call by `**`, with its plain dict where that is known."""
        found: list[tuple[str, Plain | None]] = []
        for arg in call.args:
            if arg.star != "**":
                continue
            name = arguments.code(arg.value)
            if arguments.is_plain(arg.value):
                found.append((name, arg.value))
            else:
                found.append((name, self.edited_literals.get(name, self.literals.get(name))))
        return found

    def _store(self, call: cst.Call, unpacked: str, literal: Plain) -> cst.Call:
        """Keep an edited dict: in the call where it stands there, else for the line that assigns it."""
        args = list(call.args)
        for at, arg in enumerate(args):
            if arg.star == "**" and arguments.is_plain(arg.value) and arguments.code(arg.value) == unpacked:
                args[at] = arg.with_changes(value=literal)
                return call.with_changes(args=args)
        self.edited_literals[unpacked] = literal
        return call


def _same(old: cst.BaseExpression, value: Value) -> bool:
    return arguments.code(old) == arguments.code(arguments.expression(value))
