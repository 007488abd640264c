"""Several processes on one database, and one that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import slipstream
from slipstream.storage.chat_database import ChatDatabase

WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from slipstream.chat.records import Message, Role
from slipstream.storage.chat_database import ChatDatabase

store = ChatDatabase(Path(sys.argv[1]), busy_seconds=30)
chat = store.create()
for number in range(int(sys.argv[2])):
    text = f"{number}"
    store.save_message(chat.id, Message(f"{chat.id}-{text}", Role.USER, text, datetime.now(UTC)))
    print(chat.id, text, flush=True)
store.close()
"""


def start_writer(path: Path, messages: int) -> subprocess.Popen[str]:
    package_root = Path(slipstream.__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(messages)],
        env=os.environ | {"PYTHONPATH": str(package_root)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_processes_that_start_together_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    writers = [start_writer(path, 15) for _ in range(4)]
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    store = ChatDatabase(path)
    chats = [store.load(summary.id) for summary in store.summaries()]
    store.close()
    assert [[turn.text for turn in chat.messages] for chat in chats if chat] == [
        [str(number) for number in range(15)]
    ] * 4


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
@pytest.mark.parametrize("saved", [1, 7, 23])
def test_what_was_saved_survives_a_kill(tmp_path: Path, saved: int) -> None:
    path = tmp_path / "chats.db"
    with start_writer(path, 100_000) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline().split() for _ in range(saved)]
        writer.send_signal(signal.SIGKILL)
    store = ChatDatabase(path)
    chat = store.load(lines[0][0])
    store.close()
    assert chat is not None
    texts = [turn.text for turn in chat.messages]
    assert texts == [str(number) for number in range(len(texts))]
    assert len(texts) >= saved
