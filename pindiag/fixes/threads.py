"""The number of intra-op threads of the main process, set once behind the imports."""
# ruff: noqa: N802 - libcst calls visitors by the names of its nodes

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from pindiag.fixes import arguments
from pindiag.fixes.inserted import KEEP_THREADS

WHY = "# Leaves CPUs to the loader's workers."
_SET = "torch.set_num_threads"
_Statement = cst.BaseStatement | cst.BaseSmallStatement


def with_threads(source: str, number: int) -> tuple[str, str | None]:
    """The source with the number set; otherwise as it was, with the reason why it cannot be.

    Where the script sets it already, the number there is changed.
    """
    module = cst.parse_module(source)
    settings = _Settings()
    module.visit(settings)
    own = [call for call in settings.found if arguments.code(call) != KEEP_THREADS]
    if len(own) > 1:
        return source, "the script sets it in several places"
    if own:
        return _changed(module, own[0], number)
    at = _behind_imports(module.body)
    if not any(_binds_torch(statement) for statement in module.body[:at]):
        return source, "the file does not import torch by that name where it begins"
    line = cst.SimpleStatementLine(
        body=[cst.Expr(cst.parse_expression(f"torch.set_num_threads({number})"))],
        leading_lines=[cst.EmptyLine(indent=False), cst.EmptyLine(comment=cst.Comment(WHY))],
    )
    return module.with_changes(body=[*module.body[:at], line, *module.body[at:]]).code, None


def _changed(module: cst.Module, call: cst.Call, number: int) -> tuple[str, str | None]:
    old = call.args[0].value if call.args else None
    if old is None or not arguments.is_literal(old):
        said = arguments.code(call)
        return module.code, f"the script sets it by `{said}`; change it there"
    if arguments.code(old) == str(number):
        return module.code, None
    changed = module.deep_replace(call, arguments.with_value(call, 0, number))
    assert isinstance(changed, cst.Module)
    return changed.code, None


def _behind_imports(body: Sequence[_Statement]) -> int:
    """Where the last import ends that stands before all functions and classes."""
    first = next((at for at, each in enumerate(body) if isinstance(each, (cst.FunctionDef, cst.ClassDef))), len(body))
    return max((at + 1 for at in range(first) if _import(body[at]) is not None), default=0)


def _import(statement: _Statement) -> cst.Import | cst.ImportFrom | None:
    """The import that a line is made of."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    only = statement.body[0]
    return only if isinstance(only, (cst.Import, cst.ImportFrom)) else None


def _binds_torch(statement: _Statement) -> bool:
    found = _import(statement)
    names = found.names if isinstance(found, cst.Import) else ()
    return any(arguments.code(one.name) == "torch" and one.asname is None for one in names)


class _Settings(cst.CSTVisitor):
    """Calls that set the number."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.Call] = []

    def visit_Call(self, node: cst.Call) -> None:
        if arguments.code(node.func) == _SET:
            self.found.append(node)
