import dataclasses
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pindiag.redact import MASK, Redactor, hide_arguments, secret_values

HERE = Redactor(home="/home/ada", user="ada", host="node17.lab.example", cwd="/home/ada/work")

CASES = [
    ("a file below cwd", 'File "/home/ada/work/src/train.py", line 3', 'File "src/train.py", line 3'),
    ("cwd itself", "in /home/ada/work, now", "in ., now"),
    ("a folder that only begins like cwd", "/home/ada/work2/x.py", "~/work2/x.py"),
    ("home", "/home/ada/data", "~/data"),
    ("home alone", "HOME is /home/ada", "HOME is ~"),
    ("someone else's home", "/home/grace/x.py and /Users/grace/y.py", "~/x.py and ~/y.py"),
    ("a Windows home", r"C:\Users\grace\x.py", r"~\x.py"),
    ("user", "ada@node17", "<user>@<host>"),
    ("user inside a word", "canada", "canada"),
    ("host with domain", "on node17.lab.example now", "on <host> now"),
    ("an outer path", "/data/secret-project/images/1.jpg", "…/1.jpg"),
    ("a package", "/data/env/lib/site-packages/torch/x.py", "…/site-packages/torch/x.py"),
    ("a system path", "/dev/shm is full, see /proc/pressure/io", "/dev/shm is full, see /proc/pressure/io"),
    ("a unit is no path", "3 240 samples/s", "3 240 samples/s"),
    ("a diff header", "--- a/train.py", "--- a/train.py"),
    ("a site", "https://pytorch.org/docs/stable/x.html", "https://pytorch.org/docs/stable/x.html"),
    ("IPv4", "tcp://10.1.2.3:29500", "tcp://<address>:29500"),
    ("loopback", "127.0.0.1", "127.0.0.1"),
    ("a version", "driver 570.86.15, torch 2.11.0+cu130", "driver 570.86.15, torch 2.11.0+cu130"),
    ("IPv6", "fe80::1ff:fe23:4567:890a", "<address>"),
    ("C++ names", "at::native::add, c10::cuda::add", "at::native::add, c10::cuda::add"),
    ("a time of day", "at 12:34:56", "at 12:34:56"),
    ("MAC", "00:1A:2b:3c:4d:5e", "<address>"),
    ("an option", "train.py --api-key abc123 --epochs 3", f"train.py --api-key {MASK} --epochs 3"),
    ("an option with =", "--wandb-token=abc123", f"--wandb-token={MASK}"),
    ("an environment variable", "AWS_SECRET_ACCESS_KEY=abc/def", f"AWS_SECRET_ACCESS_KEY={MASK}"),
    ("JSON", '{"password": "hunter2 x"}', f'{{"password": "{MASK}"}}'),
    ("code with a string", 'login(token="abc123")', f'login(token="{MASK}")'),
    ("code without a secret", "sorted(x, key=len), token=tokenizer(x), max_tokens=512", None),
    ("a known shape", "hf_" + "a1" * 12, MASK),
    ("a login in an address", "https://ada:pw123@example.org/x", f"https://{MASK}@example.org/x"),
    ("a bearer", "Authorization: Bearer abcdef123456", f"Authorization: Bearer {MASK}"),
    ("a printed list of arguments", "['--api-key', 'abc', '-v']", f"['--api-key', {MASK}, '-v']"),
    ("a short word that means a secret", "--auth abc --pass xyz", f"--auth {MASK} --pass {MASK}"),
    ("words that hold it by chance", "--author ada2 --passes 3 --bypass 1", "--author ada2 --passes 3 --bypass 1"),
    ("a query", "https://x.org/a?sig=ab%2Fc&n=1", f"https://x.org/a?sig={MASK}&n=1"),
    ("a log", "api key: a1b2c3d4, token: str, tokens: 512000", f"api key: {MASK}, token: str, tokens: 512000"),
    ("more shapes", f"sk_live_{'a1' * 8} npm_{'a1' * 16} pypi-{'a1' * 10}", f"{MASK} {MASK} {MASK}"),
    ("mail", "ask grace.h+x@lab.example.org", "ask <address>"),
    ("matrices", "x@w.mT, a@self.weight", "x@w.mT, a@self.weight"),
    ("a machine in a cloud", "ip-10-1-2-3.ec2.internal", "<address>"),
    ("a path with spaces in quotes", 'File "/srv/my project/deep er/x.py"', 'File "…/x.py"'),
    ("the empty text", "", ""),
]


@pytest.mark.parametrize(("text", "wanted"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_redacts(text, wanted):
    assert HERE(text) == (text if wanted is None else wanted)


@pytest.mark.parametrize("text", [case[1] for case in CASES], ids=[case[0] for case in CASES])
def test_twice_is_once(text):
    assert HERE(HERE(text)) == HERE(text)


def test_shown_paths_still_hide_secrets():
    shown = dataclasses.replace(HERE, paths=False)
    assert shown("/home/ada/work/x.py --token abc123") == f"/home/ada/work/x.py --token {MASK}"


def test_a_name_that_is_a_word_of_every_report_stays():
    assert Redactor(user="root", host="localhost")("root of localhost") == "root of localhost"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("The worker waits, one worker: 3 batches.", None),
        ("ada@worker", "<user>@<host>"),
        ("tcp://worker:29500", "tcp://<host>:29500"),
        ("worker.lab.example", "<host>.lab.example"),
        ("worker.local", "<host>.local"),
        ("//worker/share", "//<host>/share"),
        ("HOSTNAME=worker", "HOSTNAME=<host>"),
        ("ada trains", None),
        ("by ~ada", "by ~<user>"),
    ],
)
def test_in_our_sentences_a_plain_word_goes_only_where_it_stands_as_a_name(text, wanted):
    assert Redactor(user="ada", host="worker", ours=True)(text) == (text if wanted is None else wanted)


def test_in_our_sentences_a_name_that_is_no_plain_word_goes_wherever_it_stands():
    assert Redactor(user="ada7", host="worker-3", ours=True)("worker-3 of ada7") == "<host> of <user>"


def test_secret_values_of_arguments():
    args = ["--epochs", "3", "--api-key", "longvalue", "--token=othervalue", "--key", "--flag", "--password", "short"]
    assert secret_values(args) == ("othervalue", "longvalue")


def test_hidden_arguments_keep_their_names_however_short_the_secret():
    args = ["--key", "a", "hf.token=b", "--lr", "0.1", "--password", "--flag", "PASS="]
    hidden = ["--key", MASK, f"hf.token={MASK}", "--lr", "0.1", "--password", "--flag", f"PASS={MASK}"]
    assert hide_arguments(args) == hidden


def test_a_secret_is_known_as_python_json_and_addresses_write_it():
    values = secret_values(["--token", 'a"b\\c/d\n1'])
    assert {'a"b\\c/d\n1', 'a"b\\\\c/d\\n1', 'a\\"b\\\\c/d\\n1', "a%22b%5Cc%2Fd%0A1"} == set(values)


def test_the_environment_of_whoever_makes_a_report_is_searched_for_secrets(monkeypatch):
    monkeypatch.setenv("ZQ_API_KEY", "value-of-a-key")
    monkeypatch.setenv("ZQ_MODE", "value-of-a-mode")
    shown = Redactor.here("/home/ada/work", paths=False)
    assert shown("value-of-a-key value-of-a-mode") == f"{MASK} value-of-a-mode"


def test_a_secret_argument_is_found_wherever_it_stands():
    assert Redactor(secrets=("s3cr3t-value",))("KeyError: 's3cr3t-value'") == f"KeyError: '{MASK}'"


WORDS = st.text(string.ascii_letters + string.digits + " .,:;=()[]{}<>-_/\\\"'\n", max_size=60)
SECRETS = st.text(string.ascii_letters + string.digits + "+/_-", min_size=8, max_size=40).map(lambda text: "Zq9" + text)
PLANTS = st.sampled_from(
    [
        "--api-key {}",
        "--api-key={}",
        "--my-secret {}",
        "--password '{}'",
        "WANDB_API_KEY={}",
        "GH_TOKEN={}",
        "DB_PASSWORD={}",
        '"token": "{}"',
        "secret: '{}'",
        "password={}",
        "https://user:{}@host.example/x",
    ]
)


@given(before=WORDS, secret=SECRETS, plant=PLANTS, after=WORDS)
def test_no_planted_secret_survives(before, secret, plant, after):
    if "://" in plant:
        secret = secret.replace("/", "_")
    redacted = HERE(f"{before}\n{plant.format(secret)} {after}")
    assert secret not in redacted.replace(after, "")


@given(text=WORDS, name=st.from_regex(r"[a-z]{4,10}[0-9]{3}", fullmatch=True))
def test_no_user_home_or_working_directory_survives(text, name):
    redactor = Redactor(home=f"/home/{name}", user=name, host=f"{name}-box", cwd=f"/srv/{name}/project")
    planted = f"{text} /home/{name}/x.py /srv/{name}/project/y.py {name}@{name}-box by {name}"
    assert name not in redactor(planted).replace(text, "")


@given(
    st.one_of(st.text(max_size=200), st.lists(st.sampled_from([case[1] for case in CASES]), max_size=4).map("".join))
)
def test_any_text_is_taken_and_twice_is_once(text):
    once = HERE(text)
    assert HERE(once) == once


def test_the_folders_of_a_shell_are_no_passwords(monkeypatch):
    for name in ("PWD", "OLDPWD"):
        monkeypatch.setenv(name, "/home/ada/code")
    monkeypatch.setenv("DB_PWD", "s3cr3t-value-1")
    redactor = Redactor.here("/home/ada/code")
    assert redactor("/home/ada/code/train.py:56 s3cr3t-value-1") == "train.py:56 <redacted>"
