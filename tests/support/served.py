"""`planner serve` as a process of its own, and clients of it."""

import http.client
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

PATIENCE = 60.0
"""Longest wait for a state. [s]"""


@dataclass(frozen=True)
class Served:
    """A server under way."""

    process: subprocess.Popen[str]
    address: str

    @property
    def base(self) -> str:
        """Address without path."""
        return "http://" + urlsplit(self.address).netloc

    def workers(self) -> list[int]:
        """Processes that answer questions: forks, two steps below the server."""
        return [w for child in children(self.process.pid) for w in children(child)]

    def get(
        self, path: str, headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body."""
        return self.send("GET", path, None, headers)

    def send(
        self,
        method: str,
        path: str,
        body: str | None,
        headers: Mapping[str, str] | None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of any request."""
        link = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=120)
        try:
            link.request(method, path, body, dict(headers or {}))
            answer = link.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, named, answer.read()
        finally:
            link.close()

    def leave_early(self, path: str) -> None:
        """Begin to listen to events, and close the tab after the first."""
        link = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=120)
        link.request("GET", path)
        answer = link.getresponse()
        assert answer.status == 200
        assert answer.readline()
        answer.close()
        link.close()


def children(pid: int) -> list[int]:
    """Processes that a process started and that are alive."""
    try:
        listing = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    found = [int(each) for each in listing.split()]
    return [each for each in found if alive(each)]


def alive(pid: int) -> bool:
    """True unless a process is gone, or only waits to be collected."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def until(holds: Callable[[], bool], why: str) -> None:
    """Wait for a state."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, why
        time.sleep(0.05)


@contextmanager
def served(*options: str) -> Iterator[Served]:
    """A server on a free port, ended at the end."""
    command = [sys.executable, "-m", "planner", "serve", "--port", "0", *options]
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, text=True, env=os.environ
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, line
        try:
            yield Served(process, found[0])
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20)
            finally:
                process.kill()
                process.stdout.close()
