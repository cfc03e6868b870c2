"""What one inserted line brings: a script as written and a copy with the line, in fresh processes in alternating order.

    python benchmarks/one_line.py samples/encoder_on_cpu.py --before "for epoch" \
        --insert "torch.set_num_threads(torch.get_num_threads())" --pairs 4 --json -

Nothing else differs: neither arguments nor treatment. The ratio of throughputs has its 95 % interval (t-interval of log
ratios of pairs).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import command
from fresh_launches import as_written, launch_all, spec_of

from pindiag.stats import geometric_mean
from pindiag.store import RunDirectory


def samples_per_second(script: Path, arguments: Sequence[str], seconds: float, run: Path) -> float:
    """Throughput of one fresh process.

    Raises:
        SystemExit: it gave no block that counts.
    """
    journal = launch_all(spec_of(script, arguments), [as_written(seconds)], run)
    blocks = journal.blocks("discover")
    if not blocks:
        raise SystemExit(f"{script} gave no block that counts; its output is in {RunDirectory(run).target_log}")
    return blocks[0].samples / blocks[0].seconds


def with_line(script: Path, before: str, line: str) -> str:
    """The script's text with a line put before the first one that begins with `before`, as far to the right as that.

    Raises:
        SystemExit: no line begins so.
    """
    lines = script.read_text().splitlines()
    for number, text in enumerate(lines):
        if text.lstrip().startswith(before):
            indent = text[: len(text) - len(text.lstrip())]
            return "\n".join([*lines[:number], indent + line, *lines[number:]]) + "\n"
    raise SystemExit(f"no line of {script} begins with {before!r}")


def main() -> int:
    """Measure the pairs named on the command line."""
    parser = command.parser(__doc__, quick="three pairs of one second")
    parser.add_argument("script", type=Path)
    parser.add_argument("--before", required=True, help="the line goes before the first one that begins so")
    parser.add_argument("--insert", required=True, help="the line")
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1.5, help="counted seconds a process")
    parser.add_argument("arguments", nargs="*", help="arguments of the script, after --")
    asked = parser.parse_args()
    pairs, seconds = (3, 1.0) if asked.quick else (asked.pairs, asked.seconds)
    script = asked.script.resolve()
    found: dict[str, list[float]] = {"as_written": [], "with_line": []}
    with tempfile.TemporaryDirectory() as folder:
        changed = Path(folder) / script.name
        changed.write_text(with_line(script, asked.before, asked.insert))
        for pair in range(pairs):
            turns = [("as_written", script), ("with_line", changed)]
            for name, path in turns if pair % 2 == 0 else turns[::-1]:
                run = Path(folder) / f"{name}-{pair}"
                found[name].append(samples_per_second(path, asked.arguments, seconds, run))
                print(f"{name}: {found[name][-1]:.0f} samples/s", file=sys.stderr)
    mean = geometric_mean([new / old for old, new in zip(found["as_written"], found["with_line"], strict=True)])
    figures = {"script": script.name, "line": asked.insert, **found, "ratio": mean.value, "ci95": mean.ci95}
    command.write(figures, asked.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
