"""The number of intra-op threads of the main process, set once behind the imports."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst
from libcst import matchers as m

from pindiag.fixes import arguments
from pindiag.fixes.inserted import KEEP_THREADS

WHY = "# Leaves CPUs to the loader's workers."
_SET = m.Call(func=m.Attribute(value=m.Name("torch"), attr=m.Name("set_num_threads")))
_IMPORT = m.SimpleStatementLine(body=[m.Import() | m.ImportFrom()])
_TORCH = m.SimpleStatementLine(
    body=[m.Import(names=[m.ZeroOrMore(), m.ImportAlias(m.Name("torch"), None), m.ZeroOrMore()])]
)


def with_threads(source: str, number: int) -> tuple[str, str | None]:
    """The source with the number set; otherwise as it was, with the reason why it cannot be.

    Where the script sets it already, the number there is changed.
    """
    module = cst.parse_module(source)
    found = [call for call in m.findall(module, _SET) if isinstance(call, cst.Call)]
    own = [call for call in found if arguments.code(call) != KEEP_THREADS]
    if len(own) > 1:
        return source, "the script sets it in several places"
    if own:
        return _changed(module, own[0], number)
    at = _behind_imports(module.body)
    if not any(m.matches(statement, _TORCH) for statement in module.body[:at]):
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


def _behind_imports(body: Sequence[cst.BaseStatement | cst.BaseSmallStatement]) -> int:
    """Where the last import ends that stands before all functions and classes."""
    first = next((at for at, each in enumerate(body) if isinstance(each, (cst.FunctionDef, cst.ClassDef))), len(body))
    return max((at + 1 for at in range(first) if m.matches(body[at], _IMPORT)), default=0)
