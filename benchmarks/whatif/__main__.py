"""Time of what-if answers over HTTP: ``python -m benchmarks.whatif``.

A server of two workers runs on this machine; each question is asked once, from the
request to the last byte. With ``--write`` the page README.md is written anew.
"""

import argparse
import http.client
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

from benchmarks.machine import machine

PAGE = Path(__file__).with_name("README.md")
COUNTS = (8, 16, 32, 64, 128, 256, 512, 1024)
MODELS = ("llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b", "deepseek-v3")
HEAD = """# What-if answers

Time from a turned knob to its answer on the page "What if" of `planner serve`, over
HTTP, each question asked once: no answer is kept from before. The search of a first
answer ends after one second; where it ends without a proof, the page says by how much
another plan may be faster, and closes the gap afterwards.
`python -m benchmarks.whatif --write` measures anew.

"""


@contextmanager
def server() -> Iterator[str]:
    """A server of two workers.

    Yields:
        Host and port. [text]
    """
    command = [sys.executable, "-m", "planner", "serve", "--port", "0"]
    process = subprocess.Popen(  # noqa: S603  # our own command
        [*command, "--workers", "2"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    found = re.search(r"http://([^/]+)/", process.stdout.readline())
    assert found is not None
    try:
        yield found[1]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)


def seconds(where: str, model: str, count: int) -> float:
    """Time of one answer.

    Args:
        where: Host and port. [text]
        model: Name of the model. [text]
        count: GPUs. [1]

    Returns:
        Wall time of the whole request. [s]
    """
    query = urlencode({"model": model, "count": count, "gpu": "h100-sxm5-80gb"})
    link = http.client.HTTPConnection(where, timeout=120)
    began = time.monotonic()
    link.request("GET", f"/what-if?{query}")
    answer = link.getresponse()
    body = answer.read()
    took = time.monotonic() - began
    assert answer.status == 200, body[:200]
    assert b'class="card newest"' in body
    return took


def main() -> None:
    """Measure, print, and write the page where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write README.md")
    asked = parser.parse_args()
    with server() as where:
        seconds(where, "llama-3.2-1b", 8)  # the first answer waits for the imports
        rows = {n: [seconds(where, model, n) for model in MODELS] for n in COUNTS}
    lines = [f"| GPUs | {' | '.join(MODELS)} | median |", "|" + "---:|" * 6]
    for count, times in rows.items():
        cells = " | ".join(f"{t:.2f}" for t in (*times, median(times)))
        lines.append(f"| {count:,} | {cells} |")
    every = [t for times in rows.values() for t in times]
    told = f"Median {median(every):.2f} s, longest {max(every):.2f} s; {machine()}."
    print("\n".join([*lines, "", told]))
    if asked.write:
        PAGE.write_text(
            f"{HEAD}{told}\n\nSeconds of an answer:\n\n" + "\n".join(lines) + "\n"
        )


if __name__ == "__main__":
    main()
