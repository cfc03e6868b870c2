"""The training loop as it is written: whether it is given a new loader each time, and the clocks that are read in it.

Read once from the source of what runs. A loop that is not in the target's own code (a framework's) is not looked at.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .callsite import Place

_CLOCKS = frozenset({"time", "perf_counter", "monotonic", "perf_counter_ns", "monotonic_ns", "time_ns"})
_CLOCK_MODULES = frozenset({"time", "timeit"})
_STEPS = frozenset({"backward", "step"})
_NAMED = (ast.Name, ast.Attribute)


class Clock(NamedTuple):
    """Two readings of a clock around a training step, in one pass through the loop."""

    started: int
    """Line of the first one."""
    read: int
    """Line of the second one."""
    wait_is_timed: bool
    """Whether another reading, before the first one, tells how long the batch took to come."""


def describe(made: Sequence[Place], looped: Sequence[Place]) -> dict[str, Any] | None:
    """The fields of the record; None where the loop is not found in the target's own source.

    Args:
        made: the target's calls, the outermost first, in which the training loader was constructed.
        looped: those in which its first batch was asked for.
    """
    trees = _Trees()
    place = looped[-1] if looped else None
    loop = None if place is None else _training_loop(trees[place.file], place.line)
    if place is None or loop is None:
        return None
    return {
        "location": f"{place.file}:{loop.lineno}",
        "last_line": loop.end_lineno or loop.lineno,
        "clocks": [clock._asdict() for clock in _clocks(loop, _clock_names(trees[place.file]))],
        "rebuilt": _is_rebuilt(made, looped, loop, trees),
    }


class _Trees(dict[str, ast.Module]):
    """Files as they were compiled; an empty one where that cannot be told."""

    def __missing__(self, file: str) -> ast.Module:
        try:
            self[file] = ast.parse("".join(linecache.getlines(file)))
        except (SyntaxError, ValueError, RecursionError):
            self[file] = ast.Module([], [])
        return self[file]


def _training_loop(tree: ast.Module, line: int) -> ast.For | None:
    """The `for` that asks for batches at a line; the innermost one where one line holds several."""
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For)]
    found = [loop for loop in loops if loop.lineno <= line <= (loop.iter.end_lineno or loop.lineno)]
    return max(found, key=lambda loop: (loop.lineno, loop.col_offset), default=None)


# ------------------------------------------------------------------------------------------------- made each time


def _is_rebuilt(made: Sequence[Place], looped: Sequence[Place], loop: ast.For, trees: _Trees) -> bool | None:
    """Whether each pass of a loop around both makes the loader and goes through it once; None: not known."""
    if not made:
        return None
    pairs = list(zip(made, looped, strict=False))
    same = next((number for number, (one, other) in enumerate(pairs) if one != other), len(pairs))
    around = [[each for each in _around(place, trees) if each is not loop] for place in looped]
    shared = sum(len(loops) for loops in around[:same])
    if same < len(pairs) and made[same].code == looped[same].code:
        shared += sum(_holds(each, made[same].line) for each in around[same])
    return 0 < shared == sum(len(loops) for loops in around)


def _around(place: Place, trees: _Trees) -> list[ast.stmt]:
    """The loops of the function that a line lies in."""
    loops = [node for node in ast.walk(trees[place.file]) if isinstance(node, ast.For | ast.AsyncFor | ast.While)]
    return [each for each in loops if each.lineno >= place.first_line and _holds(each, place.line)]


def _holds(loop: ast.stmt, line: int) -> bool:
    return loop.lineno <= line <= (loop.end_lineno or loop.lineno)


# -------------------------------------------------------------------------------------------------------- clocks


def _clock_names(tree: ast.Module) -> frozenset[str]:
    """How this file names clocks: "time.perf_counter", "perf_counter" where that was imported from its module."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = {each.asname or each.name for each in node.names if each.name in _CLOCK_MODULES}
            names |= {f"{module}.{clock}" for module in modules for clock in _CLOCKS | {"default_timer"}}
        elif isinstance(node, ast.ImportFrom) and node.module in _CLOCK_MODULES:
            names |= {each.asname or each.name for each in node.names if each.name in _CLOCKS | {"default_timer"}}
    return frozenset(names)


def _clocks(loop: ast.For, names: frozenset[str]) -> Iterator[Clock]:
    """Clocks that are started in the loop's body, after the batch has come, and read after the step."""
    started: dict[str, int] = {}
    wait_is_timed = False
    for statement in loop.body:
        for start, read in _differences(statement, names, started):
            if start is None:
                wait_is_timed = True
            elif _steps_between(loop, start, read):
                yield Clock(start, read, wait_is_timed)
        started |= _started(statement, names)


def _started(statement: ast.stmt, names: frozenset[str]) -> dict[str, int]:
    """What a statement sets to a clock's reading, with its line."""
    if not isinstance(statement, ast.Assign) or not _is_reading(statement.value, names):
        return {}
    return {ast.unparse(target): statement.lineno for target in statement.targets}


def _differences(
    statement: ast.stmt, names: frozenset[str], started: dict[str, int]
) -> Iterator[tuple[int | None, int]]:
    """The lines of both readings of each difference; None: the first was taken before this pass began."""
    for node in ast.walk(statement):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.right, _NAMED):
            read = node.lineno if _is_reading(node.left, names) else started.get(ast.unparse(node.left))
            if read is not None:
                yield started.get(ast.unparse(node.right)), read


def _is_reading(node: ast.expr, names: frozenset[str]) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in names


def _steps_between(loop: ast.For, first: int, last: int) -> bool:
    """Whether gradients are computed, or an optimizer steps, in the lines between, and no batch is asked for."""
    calls = [node for part in loop.body for node in ast.walk(part) if isinstance(node, ast.Call)]
    between = [call for call in calls if first < call.lineno < last]
    methods = {call.func.attr for call in between if isinstance(call.func, ast.Attribute)}
    functions = {call.func.id for call in between if isinstance(call.func, ast.Name)}
    return bool(methods & _STEPS) and "next" not in functions
