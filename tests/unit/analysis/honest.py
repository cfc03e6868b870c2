"""Holds an analysis to saying why whatever it lacks is missing."""

import msgspec

NOT_GAPS = {
    "ablation",
    "tweak",
    "reason",
    "non_blocking",
    "prefetch_factor",
    "batch_size",
    "error",
    "error_step",
    "maker",
    "stacks",
}


def nulls(value, path=""):
    if value is None:
        yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from nulls(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from nulls(inner, f"{path}[{number}]")


def assert_honest(analysis):
    """Every null has a reason, and every reason a null."""
    content = msgspec.to_builtins(analysis)
    for name in ("drawing", "facts", "not_measured"):
        content.pop(name)
    content["ceilings"] = {name: ids or None for name, ids in content["ceilings"].items()}
    listed = {gap.key for gap in analysis.not_measured}
    found = {
        path
        for path in nulls(content)
        if path.rpartition(".")[2] not in NOT_GAPS
        and not (path.endswith("predicted_samples_per_second") and path not in listed)
    }
    assert found == listed
    assert all(gap.reason for gap in analysis.not_measured)
    assert all((fact.value is None) == (fact.reason is not None) for fact in analysis.facts)
    assert all(fact.source for fact in analysis.facts)
    msgspec.json.encode(analysis)
