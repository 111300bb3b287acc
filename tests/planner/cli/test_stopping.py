"""A command keeps its limits, and a signal or a full device is no bug of planner."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from planner.cli import app
from planner.cli import output as cli_output
from planner.cli import stopping as cli_stopping
from planner.cli.guard import guarded
from planner.cli.stopping import Run, SignalError, running, this_run
from planner.errors import BadInputError, TimeLimitError
from planner.questions.inputs.limits import memory_bytes
from planner.questions.outputs.files import write_whole
from planner.search.stop import INTERRUPTED

SMALL = "tiny-llama-2-a6000"
LARGE = "deepseek-v3-2048-h100"
PLANNER = (sys.executable, "-m", "planner")
UNDER_WAY = 9.0
"""Processor time after which the search of a large job is under way. [s]"""

PATIENCE = 30.0
"""Time in which workers follow the process that started them. [s]"""


def processor_time(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def listens(process: int) -> bool:
    """Whether a command is under way, so that SIGTERM is its own to take."""
    status = Path(f"/proc/{process}/status").read_text()
    (caught,) = (x for x in status.splitlines() if x.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def signalled(number: int, seconds: float, *arguments: str) -> tuple[int, str, str]:
    """A command that gets a signal after so much processor time."""
    process = subprocess.Popen(
        [*PLANNER, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while process.poll() is None and not (
        listens(process.pid) and processor_time(process.pid) >= seconds
    ):
        time.sleep(0.02)
    os.killpg(process.pid, number) if number == signal.SIGINT else os.kill(
        process.pid, number
    )
    out, told = process.communicate(timeout=120)
    assert gone(process.pid)
    return process.returncode, out, told


def gone(group: int) -> bool:
    """Whether no process of a group is left, soon after its first one ended."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_plan_with_what_is_known(
    number: signal.Signals, tmp_path: Path
) -> None:
    """Printed and written, with the bound; no worker and no scratch file stays."""
    file, page = tmp_path / "a.json", tmp_path / "a.html"
    code, out, told = signalled(
        number,
        UNDER_WAY,
        *("plan", LARGE, "--json", str(file), "--report", str(page)),
        *("--set", "search.space=full", "--time-limit", "300"),
    )
    assert code == 128 + number, told
    assert "Traceback" not in told
    assert "Proof" in out
    found = json.loads(file.read_text())
    assert found["status"] in ("feasible", "unknown")
    assert found["objective"]["bound"] > 0
    assert {path.name for path in tmp_path.iterdir()} == {"a.json", "a.html"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_a_library_reports_as_its_own_error(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    """pydantic wraps whatever is raised while it calls back."""

    @guarded
    def command() -> None:
        try:
            signal.raise_signal(number)
        except BaseException as error:
            raise RuntimeError("in a callback") from error

    with pytest.raises(typer.Exit) as ended:
        command()
    assert ended.value.exit_code == 128 + number
    assert capsys.readouterr().err == f"error: ended by {number.name}\n"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["explain", "compare"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_other_commands(command: str, number: signal.Signals) -> None:
    jobs = [LARGE] if command == "explain" else [LARGE, "llama-3.1-405b-8k-h100"]
    code, _, told = signalled(number, 0.0, command, *jobs)
    assert code == 128 + number, told
    assert "Traceback" not in told
    assert "bug of planner" not in told


@pytest.mark.slow
@pytest.mark.parametrize("space", ["default", "full"])
def test_a_large_job_keeps_its_limits(space: str) -> None:
    """Time from the start of the process, memory over all its processes."""
    from benchmarks.search.limits import GIB, planned  # noqa: PLC0415

    more = ("--memory-limit", "1 GiB")
    row = planned(LARGE, space, 10.0, more)
    assert row.within(10.0, GIB), row


@pytest.mark.slow
def test_a_full_device_and_a_closed_stdout_are_no_bugs() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PLANNER, "catalog", "targets"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        2,
        "error: stdout: cannot be written: No space left on device\n",
    )
    for shell in ("{} catalog targets >&-", "{} catalog gpus | head -1"):
        line = shell.format(" ".join(PLANNER))
        done = subprocess.run(
            ["/bin/bash", "-o", "pipefail", "-c", line],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "words",
    [
        ("--json", "{file}/a.json"),
        ("--out", "{file}/out"),
        ("--report", "{file}/a.html"),
        ("--trace", "{file}/a.json"),
        ("--json", "{folder}"),
        ("--out", "{file}"),
        ("--json", "{folder}/a", "--report", "{folder}/a"),
        ("--memory-limit", "4"),
        ("--memory-limit", "10 MiB"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_written_is_refused_before_the_search(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("here first")
    monkeypatch.setattr("planner.questions.plan.optimize_for", pytest.fail)
    given = [word.format(file=file, folder=tmp_path) for word in words]
    done = CliRunner().invoke(app, ["plan", SMALL, *given])
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert words[0] in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_that_is_not_written_leaves_no_scratch_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cli_output.Path, "replace", full)
    with pytest.raises(BadInputError, match="No space left"):
        write_whole(tmp_path / "a.json", "{}")
    assert not list(tmp_path.iterdir())


def test_the_json_of_a_full_device_is_an_error_and_the_report_is_there() -> None:
    done = CliRunner().invoke(app, ["catalog", "targets", "--json", "/dev/full"])
    assert done.exit_code == 2
    assert "megatron" in done.stdout
    assert "No space left" in done.stderr


def test_a_signal_before_the_search_ends_the_command() -> None:
    with running() as run, pytest.raises(SignalError) as before:
        run.handle(signal.SIGINT)
    assert before.value.exit_code == 130


def test_the_first_signal_ends_the_search_and_the_second_the_command() -> None:
    with running() as run:
        assert this_run() is run
        stop = run.limited(100.0, "4 GiB")
        run.handle(signal.SIGTERM)
        assert stop.why == INTERRUPTED
        assert run.spare == 0
        with pytest.raises(SignalError):
            run.handle(signal.SIGTERM)


def test_time_counts_from_the_start_of_the_process() -> None:
    """Some of it is kept for the report, more on a busy machine."""
    early = Run(began=time.monotonic() - 30.0)
    assert early.limited(100.0, "4 GiB").left <= 70.0
    assert early.spare == pytest.approx(70.0, abs=1.0)
    assert early.limited(20.0, "4 GiB").reached


def test_memory_is_read_with_its_unit() -> None:
    assert memory_bytes("4 GiB") == 2**32
    assert memory_bytes("2 GB") == 2e9


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("training.global_batch=16777216", "at most 1,048,576 sequences"),
        ("training.global_batch_tokens=1099511627776", "at most 1,048,576 sequences"),
        ("cluster.nodes=100000000000000000000", "cluster.nodes"),
        ("training.seq_len=100000000000000000000", "training.seq_len"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "predict", "memory", "explain"])
def test_absurd_sizes_are_refused_by_name(
    command: str, assignment: str, words: str
) -> None:
    layout = () if command in ("plan", "explain") else ("--layout", "tp=8")
    job = ("llama-3-8b-8-a100", *layout, "--set", assignment)
    done = CliRunner().invoke(app, [command, *job])
    assert done.exit_code == 2
    assert words in done.stderr


LONGEST = ("llama-3-8b-8-a100", "--set", "training.global_batch=1048576")


def test_a_step_of_the_longest_batch_is_priced() -> None:
    """Every sequence on its own through eight stages: 2^24 operations."""
    layout = ("--layout", "tp=1,pp=8,dp=1,micro_batch=1")
    done = CliRunner().invoke(app, ["predict", *LONGEST, *layout])
    assert done.exit_code == 0
    assert "1048576 micro-batches" in " ".join(done.stdout.split())


def test_a_search_ends_with_the_longest_batch() -> None:
    limits = ("--set", "search.pp=8", "--set", "search.schedule=1f1b")
    done = CliRunner().invoke(app, ["plan", *LONGEST, *limits])
    assert done.exit_code in {0, 3}
    assert "Optimal" in done.stdout


def test_a_step_that_is_too_long_to_simulate_is_refused_by_name() -> None:
    """GPipe has no steady state: all its forwards come first."""
    job = (*LONGEST, "--set", "framework=torchtitan")
    layout = ("--layout", "tp=1,pp=8,dp=1,micro_batch=1,schedule=gpipe")
    done = CliRunner().invoke(app, ["predict", *job, *layout])
    assert done.exit_code == 2
    assert "layout.grad_accum" in done.stderr
    assert "at most 1,048,576" in done.stderr


def test_a_command_that_does_not_end_by_itself_is_ended_at_its_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 4, whatever the command was about."""
    monkeypatch.setattr(cli_stopping, "LATE", 0.01)

    @guarded
    def command() -> None:
        this_run().limited(0.0)
        while True:
            time.sleep(0.01)

    with pytest.raises(typer.Exit) as ended:
        command()
    assert ended.value.exit_code == TimeLimitError.exit_code
    assert "give a longer --time-limit" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["predict", "llama-3.1-405b-16k-h100"], ["memory", SMALL]]
)
def test_a_limit_of_no_time_still_has_an_answer(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stages are then the even ones; a price takes the time that it takes."""
    monkeypatch.setattr(cli_stopping, "LATE", 600.0)
    answer = CliRunner().invoke(app, [*words, "--time-limit", "0"])
    assert answer.exit_code == 0, answer.output
