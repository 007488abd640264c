"""What a person sees during the set-up: numbered steps, a heartbeat, and the log when one fails."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

LINES_SHOWN_ON_FAILURE = 40
SECONDS_BETWEEN_HEARTBEATS = 30.0  # where the output is not a terminal
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f]")


class SetupError(Exception):
    """The set-up cannot go on; says what happened and what to try."""

    def __init__(self, happened: str, try_this: str = "") -> None:
        super().__init__(f"{happened}\n{try_this}" if try_this else happened)


def duration_text(seconds: float) -> str:
    """`9 s`, `2 min 05 s`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def last_line(log: Path) -> str:
    """The newest line of a growing log, without colours; empty when there is none yet."""
    with log.open("rb") as stream:
        stream.seek(0, 2)
        stream.seek(max(0, stream.tell() - 2000))
        tail = stream.read().decode("utf-8", "replace")
    for line in reversed(tail.splitlines()):
        text = _CONTROL.sub("", line).strip()
        if text:
            return text
    return ""


class Console:
    """Prints the steps and runs their commands, whose output goes to a log file."""

    def __init__(self, log: Path, steps: int) -> None:
        self._log = log
        self._steps = steps
        self._step = 0
        self._started = time.monotonic()
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")

    def start_step(self, title: str) -> None:
        self._step += 1
        self._started = time.monotonic()
        print(f"[{self._step}/{self._steps}] {title}…", flush=True)

    def finish_step(self) -> None:
        elapsed = time.monotonic() - self._started
        if elapsed >= 1:
            self.note(f"done in {duration_text(elapsed)}")

    def note(self, text: str) -> None:
        indented = text.replace("\n", "\n      ")
        print(f"      {indented}", flush=True)

    def run(
        self,
        command: Sequence[str | Path],
        *,
        failed: str,
        try_this: str = "",
        environment: dict[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        """Run a command to its end; raises SetupError(failed) with the end of its output."""
        code = self.exit_code(command, environment=environment, directory=directory)
        if code != 0:
            raise SetupError(
                f"{self._output_shown()}\n{failed} (exit code {code}). "
                f"The whole output is in {self._log}.",
                try_this,
            )

    def exit_code(
        self,
        command: Sequence[str | Path],
        *,
        environment: dict[str, str] | None = None,
        directory: Path | None = None,
    ) -> int:
        """Run a command with a heartbeat and return its exit code."""
        with self._log.open("ab") as log:
            log.write(f"\n$ {subprocess.list2cmdline(map(str, command))}\n".encode())
            log.flush()
            # close_fds=False: the child keeps the set-up lock, so that a killed set-up's orphan
            # cannot write into an environment that the next set-up is already repairing.
            process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=directory,
                close_fds=False,
            )
            try:
                return self._wait(process)
            except BaseException:
                process.terminate()
                process.wait()
                raise

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        terminal = sys.stdout.isatty()
        interval = 1.0 if terminal else SECONDS_BETWEEN_HEARTBEATS
        next_beat = time.monotonic() + interval
        while True:
            try:
                code = process.wait(timeout=max(0.05, next_beat - time.monotonic()))
            except subprocess.TimeoutExpired:
                next_beat += interval
                self._beat(terminal)
                continue
            if terminal:
                print("\r\x1b[K", end="", flush=True)
            return code

    def _beat(self, terminal: bool) -> None:
        elapsed = duration_text(time.monotonic() - self._started)
        text = f"      {elapsed}: {last_line(self._log)}"
        if terminal:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[K{text[:width]}", end="", flush=True)
        else:
            print(text[:150], flush=True)

    def _output_shown(self) -> str:
        lines = self._log.read_text("utf-8", "replace").splitlines()
        return "\n".join(
            f"    | {_CONTROL.sub('', line)}" for line in lines[-LINES_SHOWN_ON_FAILURE:]
        )
