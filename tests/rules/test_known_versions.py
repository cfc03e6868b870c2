"""What is known of a version is said for that version only."""

import pytest

from pindiag.rules.known_versions import ENTRIES, known_faults


def told(version: str, python: str = "3.12.1") -> str:
    return "\n".join(f"{fault.what} {fault.do}" for fault in known_faults(version, python))


CASES = [
    ("pinned_max_round_threshold_mb", ["2.13.0", "2.13.0+cpu", "2.13.1", "2.14.0"], ["2.12.1", "2.14.1", "2.15.0"]),
    ("does nothing and says nothing", ["2.6.0", "2.6.0+cu124"], ["2.7.0", "2.11.0"]),
    ("turns the tuples of a batch into lists", ["2.6.0", "2.9.1"], ["2.10.0", "2.13.0"]),
    ("not asked for its own pin_memory()", ["2.9.0", "2.10.0"], ["2.11.0"]),
    ("pin_memory_device is ignored", ["2.9.0", "2.14.1"], ["2.8.0"]),
    ("with one intra-op thread", ["2.6.0", "2.11.0", "2.13.0", "2.14.1"], ["2.15.0"]),
    ("torch.profiler window", ["2.11.0+cu130"], ["2.10.0", "2.12.0"]),
]


@pytest.mark.parametrize(("words", "having", "free"), CASES, ids=[case[0] for case in CASES])
def test_a_fault_belongs_to_its_versions(words, having, free):
    assert all(words in told(version) for version in having)
    assert not any(words in told(version) for version in free)


@pytest.mark.parametrize("version", ["2.14.0a0+gitabc123", "2.13.0.dev20260801+cu130"])
def test_a_version_from_source_is_understood(version):
    assert "pinned_max_round_threshold_mb" in told(version)


def test_the_start_method_changed_with_python():
    assert "forkserver" in told("2.14.1", "3.14.0")
    assert "forkserver" not in told("2.14.1", "3.13.9")


def test_every_fault_says_where_it_was_read_and_what_to_do():
    assert all(entry.fault.source and entry.fault.do for entry in ENTRIES)
    assert all(entry.first < entry.fixed for entry in ENTRIES)
