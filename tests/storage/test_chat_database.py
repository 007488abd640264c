from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipstream.chat.ports import ChatStore
from slipstream.chat.records import (
    AnswerRecord,
    FinishReason,
    GenerationStatistics,
    Message,
    Role,
)
from slipstream.errors import UserError
from slipstream.storage.chat_database import ChatDatabase

START = datetime(2026, 1, 1, tzinfo=UTC)
FIXTURES_SHARED = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
ANY_TEXT = st.text(alphabet=st.characters(), max_size=60)  # NUL and lone surrogates included


class Clock:
    """A clock that goes on by a second whenever it is read."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def user(text: str) -> Message:
    return Message(uuid4().hex, Role.USER, text, START)


def assistant(text: str) -> Message:
    statistics = GenerationStatistics(
        prompt_tokens=9, generated_tokens=4, prefill_seconds=0.1, decode_seconds=0.3
    )
    answer = AnswerRecord(
        "tiny",
        "/m/t.gguf",
        FinishReason.EOG,
        5,
        statistics,
        settings={"stop": ("a",), "seed": None},
    )
    return Message(uuid4().hex, Role.ASSISTANT, text, START, reasoning="hm", answer=answer)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "дані 🗂 %20?#" / "chats.db"


@pytest.fixture
def open_database(path: Path) -> Iterator[Callable[[], ChatDatabase]]:
    """Opens the file at `path`, as often as wanted."""
    opened: list[ChatDatabase] = []

    def open_() -> ChatDatabase:
        opened.append(ChatDatabase(path, clock=Clock(), busy_seconds=0.05))
        return opened[-1]

    yield open_
    for database in opened:
        database.close()


Open = Callable[[], ChatDatabase]


def test_chats_come_back_after_a_restart(open_database: Open, path: Path) -> None:
    store: ChatStore = open_database()
    chat = store.create("Be brief.")
    turns = [user("Hi"), assistant("Hello\0there"), user("again"), assistant("")]
    for turn in turns:
        store.save_message(chat.id, turn)
    store.set_title(chat.id, "Greetings")
    store.set_system_prompt(chat.id, "Be long.")
    store.close()
    store.close()

    loaded = open_database().load(chat.id)
    assert loaded is not None
    assert loaded.messages == tuple(turns)
    assert (loaded.title, loaded.system_prompt) == ("Greetings", "Be long.")
    assert loaded.created_at == chat.created_at
    assert loaded.updated_at > chat.created_at
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_unknown_chat(open_database: Open) -> None:
    store = open_database()
    assert store.load("nothing") is None
    for action in (
        lambda: store.save_message("nothing", user("x")),
        lambda: store.set_title("nothing", "x"),
        lambda: store.set_system_prompt("nothing", "x"),
    ):
        with pytest.raises(UserError, match="does not exist"):
            action()
    assert store.load("nothing") is None


def test_an_empty_chat_is_neither_listed_nor_kept(open_database: Open) -> None:
    store = open_database()
    chat = store.create("S")
    store.set_title(chat.id, "T")
    store.set_system_prompt(chat.id, "P")
    loaded = store.load(chat.id)
    assert loaded is not None
    assert (loaded.title, loaded.system_prompt, loaded.messages) == ("T", "P", ())
    assert store.summaries() == ()
    store.close()
    assert open_database().load(chat.id) is None


def test_what_was_set_before_the_first_message_is_kept(open_database: Open) -> None:
    store = open_database()
    chat = store.create("S")
    assert chat.title == "New chat"
    store.set_title(chat.id, "T")
    store.set_system_prompt(chat.id, "P")
    store.save_message(chat.id, user("x"))
    store.close()
    loaded = open_database().load(chat.id)
    assert loaded is not None
    assert (loaded.title, loaded.system_prompt) == ("T", "P")


def test_saving_again_replaces_in_place(open_database: Open, path: Path) -> None:
    store = open_database()
    chat = store.create()
    first, second, third = user("1"), assistant("2"), user("3")
    for turn in (first, second, third):
        store.save_message(chat.id, turn)
    changed = Message(second.id, Role.ASSISTANT, "two", START + timedelta(1), reasoning="r")
    store.save_message(chat.id, changed)
    store.close()
    loaded = open_database().load(chat.id)
    assert loaded is not None
    assert loaded.messages == (first, changed, third)


def test_the_schema_is_ready_for_a_tree(open_database: Open, path: Path) -> None:
    store = open_database()
    chat = store.create()
    turns = [user("1"), assistant("2"), user("3")]
    for turn in turns:
        store.save_message(chat.id, turn)
    store.close()
    connection = sqlite3.connect(path)
    rows = connection.execute(
        "SELECT id, parent_id, position FROM messages ORDER BY key"
    ).fetchall()
    version = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    parents = [None, *(turn.id for turn in turns[:-1])]
    assert rows == [(turn.id, parents[i], i) for i, turn in enumerate(turns)]
    assert version == (1,)


def test_a_message_cannot_move_to_another_chat(open_database: Open) -> None:
    store = open_database()
    one, other = store.create(), store.create()
    message = user("x")
    store.save_message(one.id, message)
    with pytest.raises(UserError):
        store.save_message(other.id, message)
    later = user("y")
    store.save_message(other.id, later)
    assert [chat.messages for chat in (store.load(one.id), store.load(other.id)) if chat] == [
        (message,),
        (later,),
    ]


def test_a_setting_that_cannot_be_stored_blocks_nothing(open_database: Open) -> None:
    store = open_database()
    chat = store.create()
    answer = AnswerRecord(
        "m", "p", FinishReason.EOG, 0, GenerationStatistics(), settings={"x": object()}
    )
    with pytest.raises(TypeError):
        store.save_message(chat.id, Message("1", Role.ASSISTANT, "x", START, answer=answer))
    store.save_message(chat.id, user("y"))
    assert [turn.text for turn in store.load(chat.id).messages] == ["y"]  # type: ignore[union-attr]


@settings(FIXTURES_SHARED, max_examples=40)
@given(
    title=ANY_TEXT,
    prompt=ANY_TEXT,
    texts=st.lists(st.tuples(st.sampled_from(Role), ANY_TEXT, ANY_TEXT), min_size=1, max_size=4),
)
def test_any_text_comes_back(
    open_database: Open, title: str, prompt: str, texts: list[tuple[Role, str, str]]
) -> None:
    store = open_database()
    chat = store.create()
    turns = tuple(
        Message(uuid4().hex, role, text, START, reasoning=reasoning)
        for role, text, reasoning in texts
    )
    for turn in turns:
        store.save_message(chat.id, turn)
    store.set_title(chat.id, title)
    store.set_system_prompt(chat.id, prompt)
    loaded = store.load(chat.id)
    assert loaded is not None
    assert (loaded.title, loaded.system_prompt, loaded.messages) == (title, prompt, turns)
    assert chat.id in [summary.id for summary in store.summaries(turns[0].text)]
    store.close()


@settings(FIXTURES_SHARED, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5), st.text(max_size=5)), max_size=25))
def test_any_order_of_saves_reads_like_a_dict_per_chat(
    open_database: Open, saves: list[tuple[int, int, str]]
) -> None:
    store = open_database()
    chats = [store.create() for _ in range(3)]
    expected: list[dict[str, Message]] = [{}, {}, {}]
    for chat, number, text in saves:
        message = Message(f"{chats[chat].id}-{number}", Role.USER, text, START)
        store.save_message(chats[chat].id, message)
        expected[chat][message.id] = message
    store.close()
    store = open_database()
    for chat, messages in zip(chats, expected, strict=True):
        loaded = store.load(chat.id)
        assert (loaded.messages if loaded else ()) == tuple(messages.values())
    store.close()


# --- the list ---------------------------------------------------------------------------------


def listed(store: ChatDatabase, query: str = "") -> list[str]:
    return [summary.title for summary in store.summaries(query)]


def fill(store: ChatDatabase, *chats: tuple[str, str]) -> list[str]:
    ids = []
    for title, text in chats:
        chat = store.create()
        store.save_message(chat.id, user(text))
        store.set_title(chat.id, title)
        ids.append(chat.id)
    return ids


def test_the_latest_chat_comes_first(open_database: Open) -> None:
    store = open_database()
    ids = fill(store, ("a", "x"), ("b", "x"), ("c", "x"))
    assert listed(store) == ["c", "b", "a"]
    store.save_message(ids[0], user("y"))
    assert listed(store) == ["a", "c", "b"]
    store.set_title(ids[1], "B")
    assert listed(store) == ["a", "c", "B"]


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ("", ["Fox", "Straße", "ΟΔΟΣ", "Кошка"]),
        ("  ", ["Fox", "Straße", "ΟΔΟΣ", "Кошка"]),
        ("FOX", ["Fox"]),
        ("brown", ["Fox"]),
        ("STRASSE", ["Straße"]),
        ("οδος", ["ΟΔΟΣ"]),
        ("кошка", ["Кошка"]),
        ("МУРЛЫ", ["Кошка"]),
        ("CAFE\u0301", ["Straße"]),
        ("猫", ["Кошка"]),
        ("100%", ["Fox"]),
        ("100_", []),
        ("'\"", []),
        ("after", ["ΟΔΟΣ"]),
        ("\ud800", ["ΟΔΟΣ"]),
    ],
)
def test_search_knows_no_case_in_any_script(
    open_database: Open, query: str, titles: list[str]
) -> None:
    store = open_database()
    fill(
        store,
        ("Кошка", "мурлычет 猫"),
        ("ΟΔΟΣ", "before\0\ud800AFTER"),
        ("Straße", "im café"),
        ("Fox", "Quick BROWN, 100%"),
    )
    assert listed(store, query) == titles


def test_search_does_not_look_into_reasoning_or_prompts(open_database: Open) -> None:
    store = open_database()
    chat = store.create("secret")
    store.save_message(chat.id, Message("1", Role.ASSISTANT, "x", START, reasoning="secret"))
    assert listed(store, "secret") == []


# --- several connections ------------------------------------------------------------------------


def test_two_connections_see_and_extend_the_same_chat(open_database: Open) -> None:
    one, other = open_database(), open_database()
    chat = one.create()
    turns = [user(str(number)) for number in range(6)]
    for number, turn in enumerate(turns):
        (one, other)[number % 2].save_message(chat.id, turn)
    for store in (one, other):
        loaded = store.load(chat.id)
        assert loaded is not None
        assert loaded.messages == tuple(turns)
        assert len(store.summaries()) == 1


def test_a_locked_file_is_told_of_and_nothing_is_lost(open_database: Open, path: Path) -> None:
    store = open_database()
    chat = store.create()
    before = user("before")
    store.save_message(chat.id, before)
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    first, second = user("1"), user("2")
    for turn in (first, second):
        with pytest.raises(UserError, match="in use by another program") as caught:
            store.save_message(chat.id, turn)
        assert str(path) in caught.value.detail
    with pytest.raises(UserError, match="in use by another program"):
        store.set_title(chat.id, "x")
    assert store.load(chat.id).messages == (before, first, second)  # type: ignore[union-attr]
    other = open_database()  # can be read all the same
    assert other.load(chat.id).messages == (before,)  # type: ignore[union-attr]
    blocker.close()
    third = user("3")
    store.save_message(chat.id, third)
    assert other.load(chat.id).messages == (before, first, second, third)  # type: ignore[union-attr]


def test_what_waits_is_written_on_closing(open_database: Open, path: Path) -> None:
    store = open_database()
    fill(store, ("old", "x"))
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    chat = store.create()
    with pytest.raises(UserError):
        store.save_message(chat.id, user("Waiting"))
    assert listed(store) == ["New chat", "old"]
    assert listed(store, "waiting") == ["New chat"]
    assert listed(store, "old") == ["old"]
    blocker.close()
    store.close()
    assert listed(open_database()) == ["New chat", "old"]


def test_closing_while_locked_ends(
    open_database: Open, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_database()
    chat = store.create()
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(UserError):
        store.save_message(chat.id, user("x"))
    store.close()
    blocker.close()
    assert "lost" in caplog.text


def test_a_file_locked_for_good_cannot_be_opened(open_database: Open, path: Path) -> None:
    open_database().close()
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("PRAGMA locking_mode = EXCLUSIVE")
    blocker.execute("BEGIN EXCLUSIVE")
    blocker.execute("CREATE TABLE x (y)")
    blocker.execute("COMMIT")
    with pytest.raises(UserError, match="in use by another program"):
        open_database()
    blocker.close()


# --- trouble ----------------------------------------------------------------------------------


def test_a_full_disk_is_told_of_and_the_app_goes_on(open_database: Open) -> None:
    store = open_database()
    chat = store.create()
    store.save_message(chat.id, user("small"))
    (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    big = user("x" * 100_000)
    with pytest.raises(UserError, match="full"):
        store.save_message(chat.id, big)
    store._connection.execute("PRAGMA max_page_count = 1000000")
    last = user("last")
    store.save_message(chat.id, last)
    store.close()
    loaded = open_database().load(chat.id)
    assert loaded is not None
    assert loaded.messages[1:] == (big, last)


def refused(open_database: Open, path: Path, match: str) -> None:
    """Opening must fail with these words and leave the file as it is."""
    before = path.read_bytes()
    with pytest.raises(UserError, match=match) as caught:
        open_database()
    assert str(path) in caught.value.detail
    assert caught.value.hint
    assert path.read_bytes() == before


def test_a_newer_version_is_left_alone(open_database: Open, path: Path) -> None:
    store = open_database()
    fill(store, ("a", "b"))
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    refused(open_database, path, "newer version")


def test_a_database_of_another_program_is_left_alone(open_database: Open, path: Path) -> None:
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE chats (x)")
    connection.close()
    refused(open_database, path, "another program")


@pytest.mark.parametrize(
    "content", [b"x", b"not a database" * 500, b"\0" * 4096, b"SQLite format 3\0" + b"\xff" * 4080]
)
def test_what_is_no_database_is_left_alone(open_database: Open, path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    refused(open_database, path, "damaged")


def test_an_empty_file_is_a_new_database(open_database: Open, path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    assert open_database().summaries() == ()


def filled_file(open_database: Open, path: Path) -> bytes:
    store = open_database()
    for number in range(12):
        chat = store.create()
        for turn in range(4):
            store.save_message(chat.id, user(f"{number}-{turn} " + "text " * 300))
    store.close()
    assert not path.with_name("chats.db-wal").exists()
    return path.read_bytes()


def test_a_truncated_file_is_left_alone(open_database: Open, path: Path) -> None:
    whole = filled_file(open_database, path)

    @settings(deadline=None, max_examples=150)
    @given(
        st.integers(1, len(whole) - 1) | st.integers(1, len(whole) // 4096 - 1).map((4096).__mul__)
    )
    def check(size: int) -> None:
        path.write_bytes(whole[:size])
        refused(open_database, path, "damaged")

    check()


def test_damage_anywhere_gives_words_and_no_traceback(open_database: Open, path: Path) -> None:
    whole = filled_file(open_database, path)

    @settings(deadline=None, max_examples=150)
    @given(st.integers(0, len(whole) - 1), st.binary(min_size=1, max_size=600))
    def check(offset: int, garbage: bytes) -> None:
        damaged = bytearray(whole)
        damaged[offset : offset + len(garbage)] = garbage
        path.write_bytes(damaged[: len(whole)])
        try:
            store = open_database()
        except UserError:
            assert path.read_bytes() == damaged[: len(whole)]
            return
        with suppress(UserError):
            for summary in store.summaries("text"):
                store.load(summary.id)
        with suppress(UserError):
            store.save_message(store.create().id, user("x"))
        store.close()
        for name in ("chats.db-wal", "chats.db-shm"):
            path.with_name(name).unlink(missing_ok=True)

    check()


def crash(open_database: Open, path: Path, keep: Path) -> tuple[bytes, bytes]:
    """The file and its log as a crash leaves them: with messages in the log alone."""
    store = open_database()
    fill(store, ("first", "x" * 20_000))
    store.close()
    store = open_database()
    fill(store, ("second", "y" * 20_000))
    log = path.with_name("chats.db-wal")
    contents = path.read_bytes(), log.read_bytes()
    store.close()
    path.write_bytes(contents[0])
    log.write_bytes(contents[1])
    return contents


def test_messages_in_the_log_survive_a_crash(
    open_database: Open, path: Path, tmp_path: Path
) -> None:
    crash(open_database, path, tmp_path)
    assert listed(open_database()) == ["second", "first"]


def test_a_log_cut_anywhere_keeps_what_was_before(
    open_database: Open, path: Path, tmp_path: Path
) -> None:
    main, log = crash(open_database, path, tmp_path)
    for size in range(0, len(log), 1777):
        path.write_bytes(main)
        path.with_name("chats.db-wal").write_bytes(log[:size])
        store = open_database()
        assert listed(store)[-1] == "first"
        store.close()


def test_a_damaged_file_with_a_log_is_left_alone(
    open_database: Open, path: Path, tmp_path: Path
) -> None:
    main, log = crash(open_database, path, tmp_path)
    log_path = path.with_name("chats.db-wal")
    for size in (1, 50, 4096, 4096 * 3 + 5):
        path.write_bytes(main[:size])
        refused(open_database, path, "damaged")
        assert log_path.read_bytes() == log
    for lose in (lambda: path.write_bytes(b""), path.unlink):
        lose()
        with pytest.raises(UserError, match="damaged"):
            open_database()
        assert log_path.read_bytes() == log


def test_after_damage_nothing_more_is_written(open_database: Open, path: Path) -> None:
    filled_file(open_database, path)
    store = open_database()
    ids = [summary.id for summary in store.summaries()]
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xee" * (len(content) - 4096)
    with path.open("r+b") as file:
        file.write(content)
    store._connection.execute("PRAGMA shrink_memory")
    with pytest.raises(UserError, match="damaged"):
        store.load(ids[0])
    with pytest.raises(UserError, match="damaged"):
        store.save_message(ids[0], user("x"))
    store.close()
    assert path.read_bytes() == content


def test_unreadable_values_are_told_of(open_database: Open, path: Path) -> None:
    store = open_database()
    chat = store.create()
    answer = assistant("kept")
    store.save_message(chat.id, answer)
    store._connection.execute("UPDATE messages SET answer = '{\"seed\": 1}'")
    loaded = store.load(chat.id)
    assert loaded is not None
    assert (loaded.messages[0].text, loaded.messages[0].answer) == ("kept", None)
    store._connection.execute("UPDATE messages SET text = CAST(x'61ff62' AS TEXT)")
    assert store.load(chat.id).messages[0].text == "a\ufffdb"  # type: ignore[union-attr]
    assert len(store.summaries("A\ufffdb")) == 1
    store._connection.execute("UPDATE messages SET created_at = 'yesterday'")
    with pytest.raises(UserError, match="unreadable"):
        store.load(chat.id)
    store._connection.execute("UPDATE chats SET updated_at = 5")
    with pytest.raises(UserError, match="unreadable"):
        store.summaries()


def test_a_file_that_cannot_be_made_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "folder.db").mkdir()
    (tmp_path / "file").touch()
    for path in (tmp_path / "folder.db", tmp_path / "file" / "chats.db"):
        with pytest.raises(UserError):
            ChatDatabase(path)


def test_a_read_only_folder_can_be_read(
    open_database: Open, path: Path, make_read_only: Callable[[Path], None]
) -> None:
    store = open_database()
    (chat_id,) = fill(store, ("a", "b"))
    store.close()
    before = path.read_bytes()
    make_read_only(path.parent)
    store = open_database()
    assert store.notice is not None
    assert str(path) in store.notice.detail
    assert listed(store, "B") == ["a"]
    with pytest.raises(UserError, match="cannot be written"):
        store.save_message(chat_id, user("x"))
    assert [turn.text for turn in store.load(chat_id).messages] == ["b", "x"]  # type: ignore[union-attr]
    chat = store.create()
    with pytest.raises(UserError, match="cannot be written"):
        store.save_message(chat.id, user("y"))
    store.close()
    assert path.read_bytes() == before


def test_a_read_only_file_can_be_read(
    open_database: Open, path: Path, make_read_only: Callable[[Path], None]
) -> None:
    store = open_database()
    (chat_id,) = fill(store, ("a", "b"))
    store.close()
    path.chmod(0o400)
    if os.access(path, os.W_OK):
        pytest.skip("this user can write into a read-only file")
    store = open_database()
    assert store.notice is not None
    assert listed(store) == ["a"]
    with pytest.raises(UserError, match="cannot be written"):
        store.save_message(chat_id, user("x"))


def test_a_new_file_in_a_read_only_folder_is_told_of(read_only: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        ChatDatabase(read_only / "chats.db")
    assert list(read_only.iterdir()) == []


def test_without_a_path_chats_last_until_closing() -> None:
    store = ChatDatabase(None)
    chat = store.create()
    store.save_message(chat.id, user("x"))
    assert len(store.summaries("X")) == 1
    assert store.notice is None
    store.close()
    store.close()
