"""A line of code before the statement that makes the loader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

KEEP_THREADS = "torch.set_num_threads(torch.get_num_threads())"
"""Makes the main thread take its number of intra-op threads over before a pin thread sets it to 1."""
WHY = "# Before a pin thread sets the number to 1 for this thread too."

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


def statement_of(node: cst.CSTNode, parents: Mapping[cst.CSTNode, cst.CSTNode]) -> Statement | None:
    """The innermost statement around a node that another one can stand before."""
    while node in parents:
        above = parents[node]
        if isinstance(above, (cst.Module, cst.IndentedBlock)):
            return node if isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)) else None
        node = above
    return None


def before(statement: Statement) -> cst.FlattenSentinel[Statement]:
    """The statement with the line before it; blank lines stay above both, comments with their statement."""
    lines = list(statement.leading_lines)
    blank = next((at for at, line in enumerate(lines) if line.comment is not None), len(lines))
    return cst.FlattenSentinel([_line(lines[:blank]), statement.with_changes(leading_lines=lines[blank:])])


def _line(above: Sequence[cst.EmptyLine]) -> cst.SimpleStatementLine:
    why = cst.EmptyLine(comment=cst.Comment(WHY))
    return cst.SimpleStatementLine(body=[cst.Expr(cst.parse_expression(KEEP_THREADS))], leading_lines=[*above, why])
