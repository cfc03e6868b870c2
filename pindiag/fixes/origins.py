"""Where a value comes from that does not stand in the loader's call: a command-line option, a config's key, a name."""
# ruff: noqa: N802 - libcst calls visitors by the names of its nodes

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from pindiag.fixes import arguments
from pindiag.fixes.arguments import Value

DECLARING = ("add_argument", "option")
"""Of argparse and of click."""
NAME, FIELD = "a name", "a field"
SHARED = "where other code may read it too"


Origin = Callable[[cst.BaseExpression, Value], str]
"""Says where a value comes from and what to do there, as a reason why it is not edited."""


class _Option(NamedTuple):
    """An option of the script's command line."""

    flag: str
    """As it is given there; "" where it goes by its position."""
    line: int
    default: str | None
    switch: bool
    """It takes no value."""


def whence(module: MetadataWrapper, path: str) -> Origin:
    """What says it of the values of a file.

    Args:
        module: the file.
        path: its path, for the places that are named.
    """
    found = _Origins(posixpath.basename(path))
    module.visit(found)
    return found.of


class _Origins(cst.CSTVisitor):
    """Options, and names and keys that are given a value, with their lines."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, file: str) -> None:
        super().__init__()
        self._file = file
        self._options: dict[str, list[_Option]] = defaultdict(list)
        self._lines: dict[tuple[str, str], list[int]] = defaultdict(list)
        """Of names, of fields by their own name alone, and of keys by the dict's name as well."""
        self._in_class = [False]
        """Of each class and function around the line."""

    def of(self, value: cst.BaseExpression, wanted: Value) -> str:
        """The reason; where several places could be meant, none is named."""
        said = f"it comes from `{arguments.code(value)}`"
        if isinstance(value, cst.Call) and len(value.args) == 1:
            value = value.args[0].value
        options = self._options.get(_last(value) or "", [])
        lines = self._lines.get(_whole(value), [])
        if len(options) == 1:
            return f"{said}, {self._option(options[0], wanted)}"
        if len(lines) == 1:
            return f"{said}, which gets its value at {self._at(lines[0])}; change it there, {SHARED}"
        return f"{said}; change it there"

    def _option(self, option: _Option, wanted: Value) -> str:
        where = self._at(option.line) + (f", default {option.default}" if option.default else "")
        if not option.flag:
            return f"an argument of the command line ({where}); say it there"
        told = f"start the script {_given(option, wanted)}, or change the default there, {SHARED}"
        return f"the option {option.flag} of the command line ({where}); {told}"

    def _at(self, line: int) -> str:
        return f"{self._file}:{line}"

    def _line(self, node: cst.CSTNode) -> int:
        return int(self.get_metadata(PositionProvider, node).start.line)

    def visit_Call(self, node: cst.Call) -> None:
        if arguments.code(node.func).rpartition(".")[2] in DECLARING:
            self._declare(node)

    def visit_ClassDef(self, _: cst.ClassDef) -> None:
        self._in_class.append(True)

    def leave_ClassDef(self, _: cst.ClassDef) -> None:
        self._in_class.pop()

    def visit_FunctionDef(self, _: cst.FunctionDef) -> None:
        self._in_class.append(False)

    def leave_FunctionDef(self, _: cst.FunctionDef) -> None:
        self._in_class.pop()

    def visit_Assign(self, node: cst.Assign) -> None:
        for each in node.targets:
            self._assign(each.target, node.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target, node.value)

    def _assign(self, target: cst.BaseExpression, value: cst.BaseExpression) -> None:
        kind, name = _whole(target)
        if kind == NAME and self._in_class[-1]:
            kind = FIELD
        self._lines[kind, name].append(self._line(target))
        if kind == NAME:
            self._hold(name, value)

    def _hold(self, name: str, value: cst.BaseExpression) -> None:
        """The keys of a dict in braces, those of dicts inside it too."""
        for each in value.elements if isinstance(value, cst.Dict) else ():
            key = arguments.text(each.key) if isinstance(each, cst.DictElement) else None
            if key is not None:
                self._lines[name, key].append(self._line(each))
            self._hold(name, each.value)

    def _declare(self, call: cst.Call) -> None:
        flags = [flag for arg in call.args if arg.keyword is None and (flag := arguments.text(arg.value))]
        long = [flag for flag in flags if flag.startswith("--")]
        said = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
        if not flags:
            return
        first = next(iter(long or flags)).split("/")[0]
        name = arguments.text(said["dest"]) if "dest" in said else first.lstrip("-").replace("-", "_")
        action = arguments.code(said["action"]) if "action" in said else ""
        self._options[name or ""].append(
            _Option(
                flag=first if first.startswith("-") else "",
                line=self._line(call),
                default=arguments.code(said["default"]) if "default" in said else None,
                switch="store_true" in action or "BooleanOptionalAction" in action or "is_flag" in said,
            )
        )


def _given(option: _Option, wanted: Value) -> str:
    """How the script is started for a value."""
    if option.switch:
        return f"{'with' if wanted else 'without'} `{option.flag}`"
    return f"with `{option.flag} {wanted}`"


def _last(value: cst.BaseExpression) -> str | None:
    """The last part of `args.workers`, `config["loader"]["workers"]` or `workers`; None: it is none of these."""
    if isinstance(value, cst.Name):
        return value.value
    if isinstance(value, cst.Attribute):
        return value.attr.value
    if isinstance(value, cst.Subscript) and len(value.slice) == 1 and isinstance(value.slice[0].slice, cst.Index):
        return arguments.text(value.slice[0].slice.value)
    return None


def _whole(value: cst.BaseExpression) -> tuple[str, str]:
    """Its last part, and what that is part of: a name, a field of some object, or the dict of a name."""
    kind = NAME if isinstance(value, cst.Name) else FIELD
    base = value
    while isinstance(base, cst.Subscript):
        base = base.value
    if base is not value:
        kind = arguments.code(base)
    return kind, _last(value) or ""
