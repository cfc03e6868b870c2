"""How workers start, also where the script as written has none."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from pindiag.analysis import analyse
from pindiag.model import LoaderChosen, LoaderIterated
from pindiag.plan.schedule import next_order


@pytest.mark.parametrize(
    ("own", "given", "value"), [("spawn", "fork", "spawn"), (None, "forkserver", "forkserver"), (None, None, None)]
)
def test_start_method(script, spec, own, given, value):
    fake = script()
    fake.machine()
    fake.play(partial(next_order, spec()))
    methods = {LoaderChosen: own, LoaderIterated: given}
    records = [
        msgspec.structs.replace(record, start_method=methods[type(record)]) if type(record) in methods else record
        for record in fake.records
    ]
    facts = {fact.name: fact for fact in analyse(spec(), records, fake.batches, {}, {}).facts if fact.trial is None}
    assert facts["start_method"].value == value
    assert (facts["start_method"].reason == "no workers were started") == (value is None)
    assert facts["platform"].value == fake.records[0].platform
