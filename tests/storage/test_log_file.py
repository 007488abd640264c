from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from slipstream.storage import log_file
from slipstream.storage.log_file import FILE_NAME, start_logging, stop_logging

logger = logging.getLogger("slipstream.somewhere")


@pytest.fixture(autouse=True)
def _stopped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # the hooks below must not report the exceptions that these tests make up
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    yield
    stop_logging()


def test_messages_reach_the_file(tmp_path: Path) -> None:
    file = start_logging(tmp_path / "logs")
    assert file == tmp_path / "logs" / FILE_NAME
    logger.info("loaded %s in \ud800 Zürich", "x")
    logger.debug("too much")
    stop_logging()
    text = file.read_text(encoding="utf-8")
    assert "INFO     slipstream.somewhere: loaded x in \\ud800 Zürich" in text
    assert "too much" not in text


def test_verbose_takes_debug_messages_of_the_app_only(tmp_path: Path) -> None:
    file = start_logging(tmp_path, verbose=True)
    assert file is not None
    logger.debug("detail")
    logging.getLogger("elsewhere").debug("chatter")
    stop_logging()
    text = file.read_text(encoding="utf-8")
    assert "detail" in text
    assert "chatter" not in text


def test_starting_twice_logs_once(tmp_path: Path) -> None:
    before = list(logging.getLogger().handlers)
    start_logging(tmp_path)
    file = start_logging(tmp_path)
    assert file is not None
    logger.warning("once")
    stop_logging()
    stop_logging()
    assert file.read_text(encoding="utf-8").count("once") == 1
    assert logging.getLogger().handlers == before


def test_everything_is_put_back(tmp_path: Path) -> None:
    hooks = sys.excepthook, threading.excepthook
    level = logging.getLogger("slipstream").level
    start_logging(tmp_path, verbose=True)
    start_logging(tmp_path)
    stop_logging()
    assert (sys.excepthook, threading.excepthook) == hooks
    assert logging.getLogger("slipstream").level == level


def test_what_nobody_caught_is_logged_and_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[object] = []
    monkeypatch.setattr(sys, "excepthook", lambda *details: passed.append(details[1]))
    file = start_logging(tmp_path)
    assert file is not None
    error = ValueError("in the window")
    sys.excepthook(ValueError, error, None)
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)

    def fail() -> None:
        raise RuntimeError("in the thread")

    thread = threading.Thread(target=fail, name="worker-7")
    thread.start()
    thread.join()
    stop_logging()
    text = file.read_text(encoding="utf-8")
    assert "ValueError: in the window" in text
    assert "uncaught exception in worker-7" in text
    assert "RuntimeError: in the thread" in text
    assert "KeyboardInterrupt" not in text
    assert passed[0] is error
    assert len(passed) == 2


def test_files_rotate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "FILE_BYTES", 2_000)
    start_logging(tmp_path)
    for number in range(200):
        logger.info("message %d", number)
    stop_logging()
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == [FILE_NAME, f"{FILE_NAME}.1", f"{FILE_NAME}.2"]
    assert all(file.stat().st_size <= 2_000 for file in files)


def test_a_rotation_that_fails_loses_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(log_file, "FILE_BYTES", 500)
    file = start_logging(tmp_path)
    assert file is not None

    def deny(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("os.rename", deny)
    for number in range(50):
        logger.info("message %d.", number)
    stop_logging()
    text = file.read_text(encoding="utf-8")
    assert all(f"message {number}." in text for number in range(50))
    assert "Logging error" not in capsys.readouterr().err


def test_an_unusable_folder_means_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("x")
    assert start_logging(blocker / "logs") is None
    logger.info("hello")
    stop_logging()
    shown = capsys.readouterr().err
    assert str(blocker) in shown
    assert "hello" in shown


def test_without_stderr_nothing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("x")
    monkeypatch.setattr(sys, "stderr", None)
    assert start_logging(blocker) is None
    logger.info("hello")


def test_a_read_only_folder_means_stderr(read_only: Path) -> None:
    assert start_logging(read_only) is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_silent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / FILE_NAME).symlink_to("/dev/full")
    start_logging(tmp_path)
    logging.getLogger("slipstream.test").warning("lost")
    stop_logging()
    assert capsys.readouterr().err == ""
