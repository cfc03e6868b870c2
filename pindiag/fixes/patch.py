"""Edits of one source file, and their unified diff."""
# ruff: noqa: N802 - libcst calls visitors by the names of its nodes

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider

from pindiag.fixes import arguments
from pindiag.fixes.arguments import Plain, Value, is_plain
from pindiag.fixes.callee import TORCH, Callee
from pindiag.fixes.carried_out import lines_of
from pindiag.fixes.inserted import KEEP_THREADS, before, statement_of
from pindiag.fixes.loader_call import CallEditor
from pindiag.fixes.origins import Origin, whence
from pindiag.fixes.threads import with_threads
from pindiag.fixes.transfer_call import is_transfer, set_non_blocking

GUARD = "torch.cuda.is_available()"
"""The value of `pin_memory` that is right with and without an accelerator."""

THREADS = "intraop_threads"
FEWER_THREADS = "fewer_intraop_threads"


@dataclass(frozen=True)
class Patch:
    """A file before and after; both are the same where nothing is to be done, or nothing can be."""

    path: str
    before: str
    after: str
    refused: Mapping[str, str] = field(default_factory=dict)
    """Changes that could not be applied, with the reason."""
    line: int | None = None
    """Where the call stands whose arguments were to change."""

    @property
    def diff(self) -> str:
        """The unified diff, "" where nothing changes."""
        return unified_diff(self.path, self.before, self.after)


def patch_loader(source: str, path: str, line: int, changes: Mapping[str, Value]) -> Patch:
    """Change arguments of the `DataLoader(...)` call at a line.

    Values that come from elsewhere (`args.workers`) are left alone and named in `Patch.refused`.
    """
    return patch(source, path, loader_line=line, changes=changes)


def patch_non_blocking(source: str, path: str, lines: Sequence[int], value: bool) -> Patch:
    """Set `non_blocking` in the `.to(...)` and `.cuda(...)` calls at these lines."""
    return patch(source, path, transfer_lines=lines, non_blocking=value)


def patch(
    source: str,
    path: str,
    *,
    loader_line: int | None = None,
    changes: Mapping[str, Value] | None = None,
    transfer_lines: Sequence[int] = (),
    non_blocking: bool = True,
    callee: Callee = TORCH,
) -> Patch:
    """Make all edits of one file at once, so that no line number is shifted by another edit.

    A change of `intraop_threads` is a line before the loader's statement, whatever the number; one of
    `fewer_intraop_threads` sets the number behind the imports.
    """
    asked = [*(changes or {}), *(["non_blocking"] if transfer_lines else [])]
    keep_threads = THREADS in asked and KEEP_THREADS not in source
    fewer = (changes or {}).get(FEWER_THREADS)
    changes = {name: value for name, value in (changes or {}).items() if name not in (THREADS, FEWER_THREADS)}
    try:
        wrapper, facts, origin = _read(source, path)
    except (cst.ParserSyntaxError, RecursionError):
        return Patch(path, source, source, dict.fromkeys(asked, "the file could not be parsed"))
    if changes.get("pin_memory") == GUARD and not facts.binds_torch:
        changes = {**changes, "pin_memory": False}
    own, refused = callee.translated(changes)
    loader, line = (callee.find(facts.calls, loader_line) if own or keep_threads else None) or (None, None)
    if loader is None:
        refused |= dict.fromkeys([*own, *([THREADS] if keep_threads else [])], callee.missing(loader_line))
    call_editor = CallEditor(callee, own, facts.literals, origin)
    editor = _Editor(facts, call_editor, loader, transfer_lines, non_blocking)
    if keep_threads and loader is not None:
        editor.insert_before(facts, loader, wrapper.resolve(ParentNodeProvider))
    after = wrapper.visit(editor).code
    refused |= editor.refused
    if isinstance(fewer, int):
        after, reason = with_threads(after, fewer)
        refused |= {FEWER_THREADS: reason} if reason else {}
    return Patch(path, source, after, refused, line)


@lru_cache(maxsize=4)
def _read(source: str, path: str) -> tuple[MetadataWrapper, _Survey, Origin]:
    """All that is known of a file before it is edited; a report asks for several patches of the same one.

    Raises:
        ParserSyntaxError, RecursionError: it could not be parsed.
    """
    wrapper = MetadataWrapper(cst.parse_module(source))
    facts = _Survey()
    wrapper.visit(facts)
    return wrapper, facts, whence(wrapper, path)


def unified_diff(path: str, before: str, after: str) -> str:
    """A diff that `patch -p1` and `git apply` take; "" where nothing changes."""
    name = path.lstrip("/")
    lines = difflib.unified_diff(lines_of(before), lines_of(after), f"a/{name}", f"b/{name}")
    return "".join(each if each.endswith("\n") else f"{each}\n\\ No newline at end of file\n" for each in lines)


class _Survey(cst.CSTVisitor):
    """Where calls stand, what names hold dict literals, whether `torch` is a name here."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[cst.Call, int, int]] = []
        self.binds_torch = False
        self.assigned: dict[str, list[cst.BaseExpression]] = {}
        self.touched: set[str] = set()

    @property
    def literals(self) -> dict[str, Plain]:
        """Plain dicts assigned once to a name that nothing else changes."""
        once = {name: values[0] for name, values in self.assigned.items() if len(values) == 1}
        return {name: value for name, value in once.items() if is_plain(value) and name not in self.touched}

    def visit_Call(self, node: cst.Call) -> None:
        place = self.get_metadata(PositionProvider, node)
        self.calls.append((node, place.start.line, place.end.line))
        if isinstance(node.func, cst.Attribute) and isinstance(node.func.value, cst.Name):
            self.touched.add(node.func.value.value)

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            self._assign(target.target, node.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target, node.value)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._touch(node.target)

    def visit_Param(self, node: cst.Param) -> None:
        self.touched.add(node.name.value)

    def visit_Import(self, node: cst.Import) -> None:
        for name in node.names:
            whole = arguments.code(name.name)
            self.binds_torch |= (whole == "torch" or whole.startswith("torch.")) and name.asname is None

    def _assign(self, target: cst.BaseExpression, value: cst.BaseExpression) -> None:
        if isinstance(target, cst.Name):
            self.assigned.setdefault(target.value, []).append(value)
        else:
            self._touch(target)

    def _touch(self, target: cst.BaseExpression) -> None:
        if isinstance(target, cst.Subscript):
            target = target.value
        if isinstance(target, cst.Name):
            self.touched.add(target.value)


class _Editor(cst.CSTTransformer):
    """Edits the calls that the survey found at the wanted lines."""

    def __init__(
        self,
        survey: _Survey,
        call_editor: CallEditor,
        loader: cst.Call | None,
        transfer_lines: Sequence[int],
        non_blocking: bool,
    ) -> None:
        super().__init__()
        self.refused: dict[str, str] = {}
        self.non_blocking = non_blocking
        self.literals = survey.literals
        self.call_editor = call_editor
        self.loader = loader if call_editor.changes else None
        self.transfers = [
            call for call, start, end in survey.calls if is_transfer(call) and _covers(start, end, transfer_lines)
        ]
        self.follows: cst.CSTNode | None = None
        """The statement that a new line is to stand before."""
        self._edit_first()
        self._refuse_missing(survey, transfer_lines)

    def insert_before(self, survey: _Survey, loader: cst.Call, parents: Mapping[cst.CSTNode, cst.CSTNode]) -> None:
        """Put the line that keeps the main thread's threads before the statement that makes the loader."""
        if not survey.binds_torch:
            self.refused[THREADS] = "the file does not import torch by that name"
        else:
            self.follows = statement_of(loader, parents)

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Any:
        left = super().on_leave(original_node, updated_node)
        if original_node is self.follows and isinstance(left, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            return before(left)
        return left

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if original_node is self.loader:
            return self.call_editor.edit(updated_node)
        literal = self._edited(original_node)
        if isinstance(literal, cst.Call):
            return literal
        if any(original_node is each for each in self.transfers):
            edited, reason = set_non_blocking(updated_node, self.non_blocking)
            self.refused |= {"non_blocking": reason} if reason else {}
            return edited
        return updated_node

    def leave_Dict(self, original_node: cst.Dict, updated_node: cst.Dict) -> cst.Dict:
        literal = self._edited(original_node)
        return literal if isinstance(literal, cst.Dict) else updated_node

    def _edited(self, original: cst.CSTNode) -> Plain | None:
        """What became of a dict that is unpacked into the loader's call."""
        name = next((name for name, literal in self.literals.items() if literal is original), None)
        return None if name is None else self.call_editor.edited_literals.get(name)

    def _edit_first(self) -> None:
        """Find what the loader's edit does to dict literals, which stand before the call."""
        if self.loader is not None:
            self.call_editor.edit(self.loader)
            self.refused |= self.call_editor.refused

    def _refuse_missing(self, survey: _Survey, transfer_lines: Sequence[int]) -> None:
        held = [(start, end) for call, start, end in survey.calls if is_transfer(call)]
        for each in transfer_lines:
            if not any(start <= each <= end for start, end in held):
                self.refused["non_blocking"] = f"no .to() or .cuda() call stands at line {each}"


def _covers(start: int, end: int, lines: Sequence[int]) -> bool:
    return any(start <= line <= end for line in lines)
