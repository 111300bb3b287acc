"""`planner serve` as strangers meet it: many at once, gone early, of ill will."""

import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml
from hostile import PAYLOADS
from served import Served, alive, children, served, until

import planner
from planner.hardware.reading.files import SHIPPED
from planner.job.one_line import job_of

pytestmark = pytest.mark.web
ROOT = Path(__file__).resolve().parents[2]
PAGES = ("plan", "what-if", "compare", "memory", "explain", "rows")
ROWS = ROOT / "tests" / "planner" / "calibration" / "measured" / "nemo-docs.yaml"
LONG = "/live/plan?model=deepseek-v3&on=2048xh100"
"""A search that takes far longer than a test listens."""
TEXTS = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', *PAYLOADS)
JOBS = [
    {"model": "llama-3.2-1b", "on": on, "seq_len": str(seq_len), "method": method}
    for on in ("1xh100", "2xh100", "4xh100", "8xh100", "8xa100-80")
    for seq_len in (512, 1024, 2048, 4096, 8192)
    for method in ("full",)
]


class Read(HTMLParser):
    """Elements of a page, values of its fields, and code in its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.values: list[str | None] = []
        self.code = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.values += [value for name, value in attrs if name == "value"]

    def handle_data(self, data: str) -> None:
        self.code += data if self.tags[-1:] == ["script"] else ""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    """One server of two workers for most tests."""
    with served("--workers", "2", "--waiting", "60") as found:
        yield found


def test_pages_have_the_headers_and_no_word_of_the_server(server: Served) -> None:
    for page in PAGES:
        status, headers, body = server.get(f"/{page}")
        assert status == 200
        assert headers["x-content-type-options"] == "nosniff"
        assert (
            "unsafe-inline" not in headers["content-security-policy"].split("style")[0]
        )
        assert "server" not in headers
        assert b"<h1" in body
        assert b"http://" not in body.replace(b"http://www.w3.org/2000/svg", b"")
        assert b"https://" not in body


def test_strangers_are_refused(server: Served) -> None:
    assert server.get("/plan", {"Host": "evil.example"})[0] == 421
    assert server.get("/assets/../app.py")[0] == 404
    assert server.get("/assets/%2e%2e%2fapp.py")[0] == 404
    assert (
        server.send("POST", "/rows", "content=x", {"Origin": "http://evil"})[0] == 403
    )
    assert server.get("/openapi.json")[0] == 404


@pytest.mark.parametrize("page", PAGES[:-1])
def test_hostile_texts_appear_as_text(server: Served, page: str) -> None:
    """In every field of every page; the form keeps them, and nothing runs."""
    from planner.web.fields import FORMS  # noqa: PLC0415

    for text in TEXTS:
        fields = {f.name: text for f in FORMS[page]} | {"on": text, "price": text}
        read = Read()
        status, _, sent = server.get(f"/{page}?{urlencode(fields)}")
        if status == 414:
            assert len(text) > 1000
            continue
        read.feed(sent.decode())
        assert text.strip() in read.values
        assert "img" not in read.tags
        assert "alert(1)" not in read.code


@pytest.mark.parametrize("kind", ["rows", "log"])
def test_hostile_rows_appear_as_text(server: Served, kind: str) -> None:
    """In the box, in every field beside it, and in what is said about them."""
    from planner.web.fields import FORMS  # noqa: PLC0415

    for text in TEXTS:
        fields = {f.name: text for f in FORMS["rows"]} | {"is": kind, "content": text}
        status, headers, sent = posted(server, fields)
        there = headers.get("location")
        pages = [server.get(path)[2] for path in (there, f"/live{there}") if there]
        assert status in {303, 413, 422}
        for page in [sent, *pages]:
            read = Read()
            read.feed(page.decode())
            assert "img" not in read.tags
            assert "alert(1)" not in read.code


def test_no_path_is_read(server: Served, tmp_path: Path) -> None:
    """Neither by name, nor as a config of a model, nor as a cluster, nor in rows."""
    secret = tmp_path / "config.json"
    secret.write_text('{"model_type": "sesame"}')
    for field in ("model", "on", "network"):
        job = {"model": "llama-3.2-1b", "on": "8xh100"} | {field: str(secret)}
        status, _, body = server.get(f"/plan.json?{urlencode(job)}")
        assert (status, b"sesame" in body) == (422, False)
    relative = os.path.relpath(secret, "/")
    job = {"model": relative, "on": "8xh100"}
    assert server.get(f"/plan.json?{urlencode(job)}")[0] == 422
    rows = yaml.safe_dump([{"id": "a", "model": str(secret), "cluster": "x"}])
    status, headers, _ = posted(server, {"is": "rows", "content": rows})
    assert status == 303
    said = server.get(f"/live{headers['location']}")[2].decode()
    assert "names a file" in said
    assert "sesame" not in said


def posted(server: Served, fields: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    return server.send("POST", "/rows", urlencode(fields), kind)


def test_rows_have_an_address_that_can_be_opened_again(server: Served) -> None:
    """Errors of measured rows, equal to those of `planner validate`."""
    content = ROWS.read_text()
    status, headers, _ = posted(server, {"is": "rows", "content": content})
    assert status == 303
    for _ in range(2):
        body = server.get(headers["location"])[2].decode()
        assert f"/live{headers['location']}" in body
    said = server.get(f"/live{headers['location']}")[2].decode()
    assert 'data-answered="rows"' in said
    found = json.loads(server.get(f"{headers['location']}/file.json")[2])
    assert found["schema"] == "planner/validation@1"
    assert posted(server, {"is": "rows", "content": ""})[0] == 422
    assert posted(server, {"is": "rows", "content": "x" * 2_100_000})[0] == 422
    assert posted(server, {"is": "rows", "content": "x" * 6_100_000})[0] == 413
    assert server.get("/rows/0123")[0] == 404


def plain(text: bytes | str) -> dict[str, Any]:
    """An answer without the seconds that its search took."""
    found: dict[str, Any] = json.loads(text)
    del found["search"]["seconds"]
    return found


def test_fifty_searches_of_eight_clients_say_what_the_command_says(
    server: Served, tmp_path: Path
) -> None:
    """All with the answers of Python, and those of some with the command's."""
    paths = [f"/plan.json?{urlencode(job)}" for job in JOBS for _ in range(2)]
    assert len(paths) == 50
    with ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(server.get, paths))
    assert {status for status, _, _ in answers} == {200}
    for job, (_, _, body), (_, _, twin) in zip(
        JOBS, answers[::2], answers[1::2], strict=True
    ):
        assert plain(body) == plain(twin)
        made = job_of(
            job["model"],
            job["on"],
            SHIPPED,
            method=job["method"],
            seq_len=int(job["seq_len"]),  # type: ignore[arg-type]
        )
        assert plain(body) == plain(planner.plan(made.fields).to_json())
    for at in (0, 17):
        words = [
            word
            for k, v in JOBS[at].items()
            for word in (f"--{k}".replace("_", "-"), v)
        ]
        command = [sys.executable, "-m", "planner", "plan", *words, "--json", "-"]
        done = subprocess.run(command, capture_output=True, cwd=tmp_path, check=True)
        assert plain(answers[2 * at][2]) == plain(done.stdout)


def test_a_launch_folder_is_read_back(server: Served, tmp_path: Path) -> None:
    query = urlencode({"model": "llama-3.2-1b", "on": "8xh100"})
    status, headers, body = server.get(f"/plan.zip?{query}")
    assert (status, headers["content-type"]) == (200, "application/zip")
    with zipfile.ZipFile(io.BytesIO(body)) as folder:
        folder.extractall(tmp_path)
    command = [sys.executable, "-m", "planner", "import", "run", "--out", "back.yaml"]
    command += ["--node", "dgx-h100", "--nodes", "1", "--model", "llama-3.2-1b"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    back = yaml.safe_load((tmp_path / "back.yaml").read_text())
    held = json.loads((tmp_path / "run" / "plan.json").read_text())["layout"]
    assert {name: back["layout"][name] for name in ("tp", "pp", "micro_batch")} == {
        name: held[name] for name in ("tp", "pp", "micro_batch")
    }
    job = yaml.safe_load(server.get(f"/plan.yaml?{query}")[2])
    assert job["model"] == "llama-3.2-1b"


def test_two_clients_who_leave_free_their_workers(server: Served) -> None:
    until(lambda: not server.workers(), "others work still")
    with ThreadPoolExecutor(2) as clients:
        list(clients.map(server.leave_early, [LONG, LONG + "&seq_len=4096"]))
    until(lambda: not server.workers(), "a worker goes on for nobody")
    assert server.get("/plan.json?model=llama-3.2-1b&on=4xh100")[0] == 200


def test_two_hundred_at_once_are_answered_or_refused() -> None:
    """Refusals say when to ask again; then the server answers as before."""
    with served("--workers", "2", "--waiting", "4", "--time-limit", "2") as crowded:
        jobs = [
            f"/plan.json?model=llama-3.1-8b&on=8xh100&seq_len={512 + 8 * n}"
            for n in range(200)
        ]
        with ThreadPoolExecutor(200) as clients:
            answers = list(clients.map(crowded.get, jobs))
        statuses = [status for status, _, _ in answers]
        assert set(statuses) == {200, 503}
        assert 6 <= statuses.count(200) <= 20
        assert all("retry-after" in h for s, h, _ in answers if s == 503)
        assert crowded.get(jobs[0])[0] == 200
        until(lambda: not crowded.workers(), "a worker is left")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_server(number: signal.Signals) -> None:
    with served("--workers", "1") as found:
        with ThreadPoolExecutor(1) as clients:
            under_way = clients.submit(
                found.get, LONG.replace("/live/plan", "/plan.json")
            )
            until(lambda: bool(found.workers()), "no search began")
            below = children(found.process.pid)
            every = [*below, *found.workers()]
            found.process.send_signal(number)
            found.process.wait(20)
            under_way.exception()
        until(lambda: not any(map(alive, every)), "a process is left")


def test_a_killed_search_is_told_and_leaves_nothing(server: Served) -> None:
    until(lambda: not server.workers(), "others work still")
    with ThreadPoolExecutor(1) as clients:
        asked = clients.submit(server.get, LONG)
        until(lambda: bool(server.workers()), "no search began")
        os.kill(server.workers()[0], signal.SIGKILL)
        assert "ended without an answer" in asked.result()[2].decode()
    until(lambda: not server.workers(), "a worker is left")


ROUTES = ("/", "/plan", "/plan.json", "/live/plan", "/what-if", "/assets/web.css")
WRONG = ("", "?token=", "?token", "?xtoken=1", "?token=wrong", "?a=token=")


def test_elsewhere_a_token_is_asked_for() -> None:
    with served("--host", "0.0.0.0") as found:  # noqa: S104  # with a token
        token = found.address.partition("?")[2]
        here = f"127.0.0.1:{found.base.rpartition(':')[2]}"
        link = Served(found.process, f"http://{here}/")
        for route, shown in product(ROUTES, WRONG):
            assert link.get(f"{route}{shown}")[0] == 401, (route, shown)
        assert link.send("POST", "/rows?token=", "content=x", None)[0] == 401
        assert link.get(f"/plan?{token}", {"Host": "evil.example"})[0] == 421
        status, headers, _ = link.get(f"/plan?{token}")
        assert status == 303
        cookie = headers["set-cookie"].partition(";")[0]
        assert link.get("/plan", {"Cookie": cookie})[0] == 200


def test_a_head_is_answered_where_no_job_is_run(server: Served) -> None:
    status, headers, body = server.send("HEAD", "/plan", None, None)
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) > 1000
    assert server.send("HEAD", LONG, None, None)[0] == 405


def test_a_port_in_use_is_told(server: Served) -> None:
    port = server.base.rpartition(":")[2]
    command = [sys.executable, "-m", "planner", "serve", "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "cannot be bound" in done.stderr
