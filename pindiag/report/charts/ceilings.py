"""What the loop reaches when stages are taken away, beside what training reaches."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pindiag.report.charts import _svg, bars
from pindiag.report.charts.bars import Bar


def chart(ceilings: Sequence[Bar], training: Sequence[Bar], few: Sequence[Bar], title: str) -> Markup:
    """Ceilings above, training below.

    Args:
        ceilings: every one of them, from the step alone to the loader with its pin thread.
        training: as written, and as recommended.
        few: the ceilings that a phone's first screen can hold.
        title: the conclusion.
    """
    return _svg.draw(
        "ceilings",
        title,
        bars.numbers([*ceilings, *training]),
        lambda narrow: bars.figure(
            [*(few if narrow else ceilings), *training], narrow, gap_before=len(few if narrow else ceilings)
        ),
    )
