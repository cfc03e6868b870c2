"""A patch of every sample: it parses, keeps what it is not about, comments included, and is made once."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from pathlib import Path

import pytest

from pindiag.fixes import Places, threads
from pindiag.fixes.inserted import WHY
from pindiag.model import Fix, Safety

SAMPLES = sorted((Path(__file__).parents[3] / "samples").glob("*.py"))
CHANGES = [
    {"num_workers": 1, "pin_memory": True, "prefetch_factor": 8, "persistent_workers": True, "non_blocking": True},
    {"num_workers": 0, "pin_memory": False},
    {"intraop_threads": 4},
    {"fewer_intraop_threads": 1},
]


def calls(source: str, *names: str) -> list[ast.Call]:
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [node for node in found if ast.unparse(node.func).rpartition(".")[2] in names]


def comments(source: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def places(sample: Path, source: str) -> Places:
    loader = calls(source, "DataLoader")[0]
    moved = [node for node in calls(source, "to", "cuda") if not isinstance(node.func.value, ast.Call)]
    return Places(
        loader=f"{sample}:{loader.lineno}",
        transfers=[f"{sample}:{node.lineno}" for node in moved],
        sources={str(sample): source},
        root=str(sample.parent),
    )


@pytest.mark.parametrize("changes", CHANGES, ids=["more", "less", "threads", "fewer threads"])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_it_applies_parses_keeps_comments_and_is_not_proposed_again(sample, changes, tmp_path):
    source = sample.read_text()
    fix = Fix(
        summary="Set it.",
        changes=changes,
        location=None,
        patch=None,
        snippet=None,
        effect=None,
        trade_off=None,
        safety=Safety(status="not_checked", reason=""),
    )
    made = places(sample, source).fix_for(fix)
    assert made.patch or made.snippet or set(changes.values()) <= {0, False}
    after = source
    if made.patch:
        (tmp_path / sample.name).write_text(source)
        subprocess.run(["git", "apply", "-"], input=made.patch, text=True, cwd=tmp_path, check=True)
        after = (tmp_path / sample.name).read_text()
    compile(after, sample.name, "exec")
    added = [WHY] if "intraop_threads" in changes else [threads.WHY] if "fewer_intraop_threads" in changes else []
    assert sorted(comments(after)) in (sorted(comments(source)), sorted([*comments(source), *added]))
    for name in ("DataLoader", "to", "cuda"):
        assert len(calls(after, name)) == len(calls(source, name))
    again = places(sample, after).fix_for(fix)
    assert again.patch is None, again.patch
    assert without_lines(again.snippet) == without_lines(made.snippet)


def without_lines(snippet: str | None) -> str:
    """An edit moves what stands below it."""
    return re.sub(r"\.py:\d+", ".py", snippet or "")
