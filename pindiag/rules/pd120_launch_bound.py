"""PD120 launch_bound."""

from __future__ import annotations

from pindiag import figures
from pindiag.model import Evidence
from pindiag.rules import ceilings
from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Ruling, at_most, require, rule


@rule(
    "PD120",
    "launch_bound",
    title="The GPU waits for the script to launch its many small kernels",
    limit="Launching small kernels",
    options={"own_share": 0.6, "kernel_share": 0.6, "main_cpu_share": 0.8, "gap_us": 50, "on_the_way_share": 0.5},
)
def launch_bound(facts: Facts, options: Options) -> Ruling:
    """The step launches many small kernels, and the GPU is done with each before the next one arrives.

    What it means:
        Each kernel costs the main thread some microseconds to launch. Where kernels are shorter than that, the GPU
        idles between them, and neither a better loader nor a faster GPU helps.

    How it is decided:
        With batches that are on the device already (`compute_only`) at least `own_share` of the step is left (0.6: what
        the input costs is for other causes to name, but the step itself must clearly be most of it); its kernels run at
        most `kernel_share` of it (0.6: above, launching less could bring less than 1.67 ×, and gaps of other kinds
        explain it as well); the main process is on a CPU at least
        `main_cpu_share` of the time (0.8: one that sleeps waits for something else); for at least `on_the_way_share`
        of the time in which the GPU ran nothing, the main thread was on the way to the next launch, in launching
        calls, operators and Python (0.5: otherwise it mostly waited itself, for its loader or for the GPU); and what
        is left of the step is at most `gap_us` for each launch (50: calling an operation from Python and launching
        it takes some 5 to 30 µs, longer gaps are work of another kind). Kernel times are of the profiler window, which
        slows launches but not kernels; the step's time is of the counted blocks, which run without it. Suspected at
        most: only a step with fewer launches would show it.

    Example:
        before: a network of twenty small layers on batches of 32 rows, forward and backward, a kernel at a time.
        after: `model = torch.compile(model, mode="reduce-overhead")`: they are recorded once and launched as one.

    Fix:
        `torch.compile(model, mode="reduce-overhead")` or a CUDA graph, fused optimizers (`fused=True`), larger batches.

    When to ignore:
        When the network will grow.

    References:
        keon/deep-q-learning#28.
    """
    require(facts.accelerator, "There is no accelerator to launch kernels on.")
    ceiling = ceilings.compute(facts)
    require(ceiling is not None and ceiling.step.interval is not None, "The ceiling of the step was not measured.")
    kernels, step = facts.number("gpu_kernel_ms"), facts.number("step_ms")
    require(step > 0, "A step takes no time.")
    launches, cpu = facts.number("gpu_launches"), facts.number("main_cpu_share")
    require(launches > 0, "The profiler window saw no launch.")
    idle = facts.number("gpu_idle_share")
    on_the_way = sum(facts.number(f"gpu_idle_{doing}_share") for doing in ("launch", "operators", "python"))
    on_the_way = min(on_the_way / idle, 1.0) if idle > 0 else 0.0
    share = min(kernels / step, 1.0)
    gap_us = 1e3 * max(step - kernels, 0.0) / launches
    own_share = 1 / max(ceiling.effect, 1.0) if ceiling else 1.0
    return Ruling(
        points=own_share >= options["own_share"]
        and share <= options["kernel_share"]
        and gap_us <= options["gap_us"]
        and cpu >= options["main_cpu_share"]
        and on_the_way >= options["on_the_way_share"],
        explanation=(
            f"A step launches {figures.count(launches)} kernels; they run {figures.share(share)} of its "
            f"{figures.milliseconds(step)} ms, which leaves {figures.significant(gap_us, 2)} µs for each launch. "
            f"For {figures.share(on_the_way)} of the time in which the GPU ran nothing, the main thread was on the way "
            "to the next launch."
        ),
        evidence=[
            Evidence(
                name="kernel time over step time", value=share, unit="1", source="profiler window, counted blocks"
            ),
            Evidence(
                name="idle GPU with the main thread on the way to a launch",
                value=on_the_way,
                unit="1",
                source="profiler window",
            ),
            *facts.evidence("gpu_launches", "gpu_launch_share", "gpu_kernel_ms", "step_ms", "main_cpu_share"),
        ],
        settled_by='a run with `torch.compile(model, mode="reduce-overhead")` or a CUDA graph',
        bound=at_most(own_share - share),
        suspected_at_most=True,
        advice='Launch less: `torch.compile(model, mode="reduce-overhead")`, a CUDA graph, or fused optimizers.',
    )
