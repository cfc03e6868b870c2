import pytest

from pindiag.analysis.who_waits import who_waits
from pindiag.model import Span


def bar(lane, name, start, end):
    return Span(lane=lane, name=name, start_ms=start, end_ms=end)


WAITING = bar("main", "wait", 0, 50)


@pytest.mark.parametrize(
    ("spans", "workers", "said"),
    [
        ([WAITING], False, "main_for_itself"),
        ([WAITING], True, "main_for_loader"),
        ([WAITING, bar("worker 1", "fetch", 0, 40)], True, "main_for_workers"),
        ([WAITING, bar("worker 1", "idle", 0, 50)], True, "main_for_loader"),
        ([WAITING, bar("worker 1", "fetch", 0, 50), bar("pin thread", "pin", 5, 45)], True, "main_for_pin_thread"),
        ([bar("main", "transfer", 0, 50), bar("copies", "HtoD", 5, 50)], True, "main_for_copies"),
        ([bar("main", "synchronise", 0, 50), bar("kernels", "kernels", 0, 50)], True, "main_for_gpu"),
        ([bar("main", "synchronise", 0, 50)], True, None),
        ([bar("main", "operators", 0, 90), bar("kernels", "kernels", 10, 40)], True, "gpu_for_main"),
        ([bar("main", "operators", 0, 10), bar("kernels", "kernels", 0, 95)], True, "all_for_gpu"),
        ([bar("main", "wait", 0, 15), bar("kernels", "kernels", 0, 70)], True, None),
        ([bar("main", "operators", 0, 95)], True, None),
        ([], True, None),
    ],
)
def test_what_is_busy_while_another_waits_is_waited_for(spans, workers, said):
    assert who_waits(spans, 100.0, workers=workers) == said
