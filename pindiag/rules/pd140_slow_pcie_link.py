"""PD140 slow_pcie_link."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules import copies
from pindiag.rules.inputs import Facts, Missing
from pindiag.rules.machine_limits import link_bytes_per_s
from pindiag.rules.rule import Options, Statement, require, rule


@rule(
    "PD140",
    "slow_pcie_link",
    title="The GPU's PCIe link is slower than the GPU and this machine allow",
    limit="The PCIe link",
    options={"copy_share": 0.05, "busy_mb_per_s": 10},
    of_fact=True,
)
def slow_pcie_link(facts: Facts, options: Options) -> Statement:
    """Copies to the GPU go over fewer PCIe lanes, or an older generation of PCIe, than the GPU could use here.

    What it means:
        The link between host and GPU carries so many bytes a second for each lane. A slot with half of its lanes
        wired, a riser or a BIOS setting leaves less of it, and each copy takes so much longer.

    How it is decided:
        By its fact: the best link that NVML reported while the script as written trained carries less than the best
        one that it says is possible for this GPU in this machine. A link that has nothing to do saves power by going
        back a generation, so with all its lanes it has to carry at least `busy_mb_per_s` (10: a training loop with
        copies worth mending moves more). It claims no gain. `medium` where copies take at least `copy_share` of each
        step (0.05: below, nothing that is done about copies could bring 1.05 ×).

    Example:
        before: a card in a slot with 4 lanes of generation 4: 7.9 GB/s.
        after: in one with 16: 31.5 GB/s.

    Fix:
        A slot with all lanes wired to the CPU; no riser; the generation set to automatic in the BIOS.

    When to ignore:
        When copies take next to nothing of a step.

    References:
        NVIDIA's manual of NVML, `nvmlDeviceGetMaxPcieLinkGeneration`.
    """
    require(facts.accelerator, "There is no accelerator, so there is no link to one.")
    generation, lanes = (int(facts.number(name)) for name in ("pcie_gen", "pcie_width"))
    best, all_lanes = (int(facts.number(name)) for name in ("pcie_gen_max", "pcie_width_max"))
    link, full = link_bytes_per_s(generation, lanes), link_bytes_per_s(best, all_lanes)
    if link is None or full is None:
        raise Missing("What a link of this generation carries is not known here.")
    if link >= full:
        said = f"Its link carries all of the possible {_rate(full)}."
        return Statement(status="ruled_out", explanation=said, evidence=facts.evidence("pcie_gen", "pcie_width"))
    busy = (facts.get("pcie_rx_bytes_per_s") or 0.0) >= options["busy_mb_per_s"] * 1e6
    require(lanes < all_lanes or busy, "The link had next to nothing to carry, and may have saved power.")
    return Statement(
        status="confirmed",
        severity=copies.severity(facts, options["copy_share"]),
        explanation=f"The link runs at generation {generation} with {lanes} lanes of at most generation {best} with "
        f"{all_lanes}: {_rate(link)} instead of {_rate(full)}.",
        evidence=facts.evidence(
            "pcie_gen", "pcie_width", "pcie_gen_max", "pcie_width_max", "pcie_rx_bytes_per_s", "transfer_share"
        ),
        remedy_summary="Use a slot with all lanes wired to the CPU, and look for a riser, a BIOS setting or a shared "
        "switch.",
    )


def _rate(bytes_per_s: float) -> str:
    return f"{figures.byte_size(bytes_per_s)}/s"
