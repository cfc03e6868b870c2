"""Secrets, names, addresses and folders are planted everywhere in a run, and looked for in all that leaves it."""

from __future__ import annotations

import json
import shutil
import string
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import synthetic_run
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pindiag import api
from pindiag.api.outcome import write
from pindiag.report.comparison import render_comparison, render_comparison_summary, sections
from pindiag.store import RunDirectory

FREE_TEXT = frozenset(("reason", "why", "exit", "message", "stacks", "filesystem", "kernel"))
"""Fields of records whose words are others'."""


@dataclass(frozen=True)
class Plants:
    """What must not be found again.

    Args:
        secrets: values, each planted in a way of its own.
        user, host, folder: names that identify somebody.
    """

    secrets: list[str]
    user: str
    host: str
    folder: str

    @property
    def home(self) -> str:
        return f"/home/{self.user}"

    @property
    def cwd(self) -> str:
        return f"{self.home}/{self.folder}"

    @property
    def args(self) -> list[str]:
        s = self.secrets
        named = [
            "--api-key",
            s[0],
            f"--hf-token={s[1]}",
            f"logger.secret={s[2]}",
            f"WANDB_API_KEY={s[3]}",
            "--pass",
            s[4],
        ]
        return [*named, f"--data={self.home}/{self.folder}/images", "ghp_" + s[5]]

    @property
    def line(self) -> str:
        """What a careless script prints."""
        s = self.secrets
        parts = [
            f"KeyError: '{s[0]}' of {s[1]!r}",
            f"{s[2]}, {s[3]} {s[4]}",
            f"https://{self.user}:{s[7]}@{self.host}/x?token={s[8]}&n=1",
            f'login(password="{s[9]}") {{"client_secret": "{s[6]}"}}',
            f"export DB_PASSWORD={s[10]}",
            f"Authorization: Bearer {s[11]}1",
            f"api key: {s[12]}1",
            f"hf_{s[5]} sk-{s[5]} AKIA{'A' * 16} xoxb-{s[5]}",
            f"['train.py', '--auth-token', '{s[13]}']",
            f"{self.user}@{self.host} by {self.user}, {self.user}@mail.example.org, /home/grace/x, C:\\Users\\grace\\y",
            "10.11.12.13 fd12:3456::78 00:1a:2b:3c:4d:5e ip-10-11-12-13.ec2.internal",
            f'File "{self.cwd}/deep/model.py", line 3; File "/srv/{self.folder}/with a {self.folder}/x.py"',
            f"/mnt/{self.folder}/y.bin ~{self.user}/z {self.home}",
        ]
        return " | ".join(parts)

    @property
    def forbidden(self) -> list[str]:
        addresses = ["10.11.12.13", "10-11-12-13", "fd12:3456", "00:1a:2b", "grace", "AKIAAAAA"]
        return [*self.secrets, self.user, self.host, self.folder, *addresses]


# Words that no text of pindiag's holds, whatever hypothesis makes of them.
WORD = st.text(string.ascii_lowercase + string.digits, min_size=5, max_size=12)
SECRET = st.text(string.ascii_letters + string.digits, min_size=20, max_size=30).map("Zq7{}".format)
PLANTS = st.builds(
    Plants,
    secrets=st.lists(SECRET, min_size=14, max_size=14, unique=True),
    user=WORD.map("zqu{}".format),
    host=WORD.map("zqh{}.lab.example".format),
    folder=WORD.map("zqf{}".format),
)


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    folder = tmp_path_factory.mktemp("clean")
    return synthetic_run.write_live_run(folder / "run", configurations=2, rounds=2, pairs=0, trace_kernels=5)


def planted(value: Any, plants: Plants) -> Any:
    """A record with what it says of others replaced."""
    if isinstance(value, list):
        return [planted(item, plants) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {key: planted(item, plants) for key, item in value.items()}
    spoken = {
        key: plants.line
        for key in FREE_TEXT & set(changed)
        if isinstance(changed[key], str) or key in ("reason", "stacks")
    }
    if "missing" in changed:
        spoken["missing"] = dict.fromkeys(changed["missing"], plants.line)
    if changed.get("type") == "files_settled":
        spoken["listed"] = [
            f"{plants.cwd}/{plants.secrets[0]}.pt",
            f"/srv/{plants.folder}/out",
            "file-of-" + plants.user,
        ]
    return {**changed, **spoken}


def failing(records: list[dict[str, Any]], plants: Plants) -> list[dict[str, Any]]:
    """The script fails in its first launch, with a traceback."""
    kept = [one for one in records if one["type"] in ("machine", "launch_began", "launch_started", "loader_made")]
    first = [one for one in kept if one["launch"] <= 1][:4]
    head = 'Traceback (most recent call last):\n  File "{}/train.py", line 3, in <module>\n    {}\nValueError: {}\n'
    failed = {
        **{"type": "target_failed", "launch": 1, "t_ns": first[-1]["t_ns"] + 1, "exception": "ValueError"},
        **{"message": plants.line, "traceback": head.format(plants.cwd, plants.line, plants.line)},
        **{"step": None, "past_natural_end": False},
    }
    ended = {
        **{"type": "launch_ended", "launch": 1, "t_ns": failed["t_ns"] + 1, "status": "failed", "exit": plants.line},
        **{"returncode": 1, "seconds": 1.0, "reason": plants.line},
    }
    over = {"type": "run_ended", "launch": 0, "t_ns": ended["t_ns"] + 1, "status": "failed", "reason": plants.line}
    return [*first, failed, ended, over]


def plant(clean: RunDirectory, path: Path, plants: Plants, *, fails: bool) -> RunDirectory:
    """A copy of a run that somebody else ran, in whose records all of it stands."""
    run = RunDirectory.create(path)
    shutil.copytree(clean.rings, run.rings, dirs_exist_ok=True)
    asked = clean.read_spec()
    moved = {"cwd": plants.cwd, "target": f"{plants.cwd}/article_floats.py", "python": f"{plants.home}/bin/python"}
    who = {"home": plants.home, "user": plants.user, "host": plants.host}
    run.write_spec(msgspec.structs.replace(asked, args=plants.args, **moved, **who))
    lines = [msgspec.json.encode(record).decode().replace(asked.cwd, plants.cwd) for record in clean.records()]
    records = list(map(json.loads, lines))
    records = failing(records, plants) if fails else [planted(record, plants) for record in records]
    (run.journal / "parent.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    script = Path(asked.target).read_text().replace("DataLoader(", f'DataLoader(  # token = "{plants.secrets[9]}"', 1)
    run.sources.write_text(json.dumps({moved["target"]: f"{script}\n# {plants.line}\n"}))
    run.target_log.write_text(plants.line)
    return run


def outputs(run: RunDirectory) -> Iterator[tuple[str, str]]:
    """Everything that a user may attach or paste."""
    for path in (run.report_html, run.summary_md, run.report_json):
        yield path.name, path.read_text(encoding="utf-8")
    made = api.ticket(run.path, run.path / "t.zip")
    yield "ticket", made.markdown
    with zipfile.ZipFile(made.archive) as archive:
        for name in archive.namelist():
            yield f"zip: {name}", archive.read(name).decode()
    compared = api.compare(run.path, run.path, force=True)
    yield "comparison as a page", render_comparison(compared, "0")
    yield "comparison in Markdown", render_comparison_summary(compared)
    yield "comparison as text", repr(sections(compared))
    yield "comparison as JSON", msgspec.json.encode(compared).decode()


# What fails is seen at once, without a smaller example.
@settings(max_examples=10, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(plants=PLANTS, fails=st.booleans())
def test_nothing_planted_leaves_the_machine(clean, tmp_path_factory, plants, fails):
    run = plant(clean, tmp_path_factory.mktemp("planted") / "run", plants, fails=fails)
    write(run, show_paths=False)
    for name, text in outputs(run):
        found = [one for one in plants.forbidden if one in text]
        assert not found, f"{name}: {[text[max(0, text.index(one) - 60) : text.index(one) + 60] for one in found]}"


def test_the_plants_are_where_a_report_would_show_them(clean, tmp_path):
    """Without redaction they are found, so the test above can fail; secrets go even then."""
    plants = Plants([f"Zq7secret{number:02}{'x' * 12}" for number in range(14)], "zquann", "zqhbox", "zqfproject")
    for fails in (False, True):
        run = plant(clean, tmp_path / str(fails), plants, fails=fails)
        made, _ = api.assemble(run)
        bare = msgspec.json.encode(made).decode()
        assert [one for one in plants.secrets if one not in bare] == []
        write(run, show_paths=True)
        shown = run.report_json.read_text() + run.report_html.read_text()
        assert plants.user in shown
        assert plants.cwd in shown
        assert [one for one in plants.secrets if one in shown] == []


def test_a_secret_of_the_environment_is_taken_out_wherever_it_stands(clean, tmp_path, monkeypatch):
    monkeypatch.setenv("ZQ_SERVICE_TOKEN", "Zq7-environment-value")
    run = RunDirectory.create(tmp_path / "run")
    run.write_spec(clean.read_spec())
    records = [record for record in clean.records() if record.launch == 0]
    over = msgspec.structs.replace(records[-1], status="failed", reason="got Zq7-environment-value")
    (run.journal / "parent.jsonl").write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in (records[0], over)))
    write(run, show_paths=False)
    assert "got <redacted>" in run.report_json.read_text()


@pytest.mark.parametrize("unit", ["a", "a/", "/a", "a:", "a-", "a.", "1.", "--key ", "token=", "://", "@", "'", "\\"])
def test_a_line_of_a_megabyte_is_read_in_linear_time(unit):
    """A pattern that is tried again from every character would take hours, and the test's time limit with them."""
    from pindiag.redact import Redactor

    long = unit * (1_000_000 // len(unit))
    assert len(Redactor(home="/home/ada", user="ada", host="box", cwd="/home/ada/x")(long)) > 0
