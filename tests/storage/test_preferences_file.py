from __future__ import annotations

import math
import os
import signal
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipstream.chat.preferences import Preferences
from slipstream.errors import UserError
from slipstream.storage import preferences_file
from slipstream.storage.preferences_file import PreferencesFile

SAMPLE = Preferences(
    last_model="/models/Gemma größer.gguf",
    recent_models=("/models/a.gguf", "/models/b.gguf"),
    n_ctx=4096,
    theme="dark",
    system_prompt='Be "brief".\nAlways.',
    sampler={"temperature": 0.5, "top_k": 20, "stop": ("\n\n",), "logit_bias": ((5, -math.inf),)},
    template_variables={"enable_thinking": False, "nested": {"a": (1, 2.0)}},
    last_chat="abc",
    window_geometry="AdnQywADAAA=",
    window_layout="AAAA/wAA",
)

TEXT = st.text(alphabet=st.characters(), max_size=20)
UNICODE = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=10)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
VALUES = st.recursive(
    st.booleans() | INTEGERS | st.floats(allow_nan=False) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(UNICODE.filter(lambda key: key != "$escaped"), inner, max_size=3)
    ),
    max_leaves=6,
)
MAPPINGS = st.dictionaries(UNICODE.filter(lambda key: key != "$escaped"), VALUES, max_size=4)
PREFERENCES = st.builds(
    Preferences,
    last_model=TEXT,
    recent_models=st.lists(TEXT, max_size=4).map(tuple),
    n_ctx=st.integers(0, 2**31),
    theme=st.sampled_from(["system", "light", "dark"]),
    system_prompt=TEXT,
    sampler=MAPPINGS,
    template_variables=MAPPINGS,
    last_chat=TEXT,
    window_geometry=TEXT,
    window_layout=TEXT,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "below" / "settings.toml"


def test_a_missing_file_gives_defaults_without_a_notice(path: Path) -> None:
    store = PreferencesFile(path)
    assert store.load() == Preferences()
    assert store.notice is None
    assert not path.parent.exists()


def test_preferences_come_back(path: Path) -> None:
    PreferencesFile(path).save(SAMPLE)
    store = PreferencesFile(path)
    assert store.load() == SAMPLE
    assert store.notice is None
    assert [file.name for file in path.parent.iterdir()] == ["settings.toml"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(PREFERENCES, min_size=1, max_size=3))
def test_any_preferences_come_back_over_any_older_ones(
    path: Path, preferences: list[Preferences]
) -> None:
    store = PreferencesFile(path)
    for item in preferences:
        store.save(item)
        read = store.load()
        assert read == item
        assert repr(read.n_ctx) == repr(item.n_ctx)
        assert store.notice is None


def test_what_toml_cannot_hold_is_left_out(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = PreferencesFile(path)
    store.save(Preferences(sampler={"seed": None, "top_k": 1, "stop": ["a", None], "x": object()}))
    assert store.load().sampler == {"top_k": 1, "stop": ("a",)}
    assert "object" in caplog.text


def test_not_a_number_comes_back(path: Path) -> None:
    store = PreferencesFile(path)
    store.save(Preferences(sampler={"x": math.nan}))
    store.save(Preferences(sampler={"x": math.nan}))
    assert math.isnan(store.load().sampler["x"])  # type: ignore[arg-type]


HAND_WRITTEN = """\
# my settings
theme = "dark"   # easier on the eyes
n_ctx = 2048
future_key = { a = 1 }

[sampler] # mine
# hot
temperature = 1.5 # very
top_k = 0

[plugin]
list = [
    1, # one
    2,
]
"""


def test_comments_and_unknown_keys_are_kept(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(HAND_WRITTEN)
    store = PreferencesFile(path)
    loaded = store.load()
    assert loaded.theme == "dark"
    store.save(Preferences(theme="light", n_ctx=2048, sampler={"temperature": 0.5, "min_p": 0.1}))
    text = path.read_text()
    assert 'theme = "light"   # easier on the eyes' in text
    assert "temperature = 0.5 # very" in text
    assert "top_k" not in text
    for kept in ("# my settings", "future_key = { a = 1 }", "[sampler] # mine", "# hot", "# one"):
        assert kept in text
    content = tomllib.loads(text)
    assert content["plugin"] == {"list": [1, 2]}
    assert content["sampler"] == {"temperature": 0.5, "min_p": 0.1}


def test_saving_the_same_again_changes_no_byte(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(HAND_WRITTEN)
    store = PreferencesFile(path)
    store.save(SAMPLE)
    before = path.read_bytes()
    store.save(store.load())
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        "sampler.temperature = 1.0\nsampler.top_k = 3\n# c\n",
        "sampler = { temperature = 1.0, inner = { a = 1 } } # c\n",
        "[sampler]\ntemperature = 1.0\n[other]\nq = 1 # c\n[sampler.inner]\na = 1\n",
        "[[recent_models]]\nx = 1\n# c\n[[recent_models]]\ny = 2\n",
        "sampler = 3 # c\n[template_variables.a.b]\nc = 1\n",
        'recent_models = [ # c\n  "a", # first\n]\r\ntheme = "dark"\r\n',
        "\ufefftheme = 'dark' # c\n",
        "[window_geometry]\na = 1 # c\n",
    ],
)
def test_unusual_layouts_are_saved_right(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_bytes(text.encode())
    store = PreferencesFile(path)
    store.load()
    assert store.notice is None
    store.save(SAMPLE)
    assert store.load() == SAMPLE
    store.save(Preferences())
    assert store.load() == Preferences()
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    assert "q" not in text or content["other"] == {"q": 1}


def test_values_survive_when_the_layout_cannot_be_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.parent.mkdir()
    path.write_text(HAND_WRITTEN)

    def fail(*_: object) -> str:
        raise AttributeError("a bug")

    monkeypatch.setattr(preferences_file, "_edited", fail)
    store = PreferencesFile(path)
    store.save(SAMPLE)
    assert store.load() == SAMPLE
    assert tomllib.loads(path.read_text())["future_key"] == {"a": 1}


def test_a_wrong_value_falls_back_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(
        "last_model = 3\nrecent_models = ['a', 1]\nn_ctx = true\ntheme = 'pink'\n"
        "sampler = []\nlast_chat = 'kept'\n"
    )
    store = PreferencesFile(path)
    assert store.load() == Preferences(last_chat="kept")
    assert store.notice is None
    for size in (-1, 2**32):  # llama.cpp would cut the larger one to 32 bits
        path.write_text(f"n_ctx = {size}\nlast_model = 'kept'\n")
        assert store.load() == Preferences(last_model="kept")
    for size in (10, 33, "15.5"):
        path.write_text(f"reading_px = {size}\nlast_model = 'kept'\n")
        assert store.load() == Preferences(last_model="kept")
    for threads in (-1, 513, "true"):  # llama.cpp aborts the process over more than 512
        path.write_text(f"n_threads = {threads}\nn_threads_batch = 4\n")
        assert store.load() == Preferences(n_threads_batch=4)


@pytest.mark.parametrize(
    "content",
    [b"theme = ", b"\xff\xfe\x00", b"a = 1\na = 2\n", b"a = " + b"[" * 50_000, b"\0" * 100],
)
def test_a_broken_file_is_set_aside_and_told_of(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    store = PreferencesFile(path)
    older = path.with_name("settings.toml.broken-1")
    older.write_bytes(b"older")
    path.write_bytes(content)
    assert store.load() == Preferences()
    assert store.notice is not None
    assert str(path) in store.notice.detail
    assert "settings.toml.broken-2" in store.notice.hint
    assert older.read_bytes() == b"older"
    assert path.with_name("settings.toml.broken-2").read_bytes() == content
    assert not path.exists()
    store.save(SAMPLE)
    assert store.load() == SAMPLE
    assert store.notice is None


def test_a_file_broken_while_the_app_runs_is_set_aside_on_saving(path: Path) -> None:
    store = PreferencesFile(path)
    store.save(SAMPLE)
    path.write_text("half a li")
    store.save(SAMPLE)
    assert store.load() == SAMPLE
    assert path.with_name("settings.toml.broken-1").read_text() == "half a li"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=60) | st.text(alphabet='[]{}="\n#.,a1', max_size=60).map(str.encode))
def test_any_bytes_are_survived(path: Path, content: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    store = PreferencesFile(path)
    store.load()
    store.save(SAMPLE)
    assert store.load() == SAMPLE
    for file in path.parent.iterdir():
        file.unlink()


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_the_file_is_for_this_user_only(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("")
    path.chmod(0o644)
    PreferencesFile(path).save(SAMPLE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_a_link_stays_a_link(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    real = tmp_path / "elsewhere" / "real.toml"
    real.parent.mkdir()
    real.write_text("# mine\n")
    path.symlink_to(real)
    PreferencesFile(path).save(SAMPLE)
    assert path.is_symlink()
    assert real.read_text().startswith("# mine\n")
    assert PreferencesFile(path).load() == SAMPLE


def test_a_path_that_is_not_unicode_comes_back(path: Path) -> None:
    name = os.fsdecode(b"/models/caf\xe9.gguf") if os.name == "posix" else "\udce9"
    preferences = Preferences(last_model=name, recent_models=(name, "b"))
    store = PreferencesFile(path)
    store.save(preferences)
    assert store.load() == preferences
    path.read_bytes().decode()


def test_a_folder_in_the_way_is_told_of(path: Path) -> None:
    path.mkdir(parents=True)
    store = PreferencesFile(path)
    assert store.load() == Preferences()
    assert store.notice is not None
    with pytest.raises(UserError, match=r"settings\.toml"):
        store.save(SAMPLE)


def test_a_read_only_folder_is_told_of_and_the_file_kept(
    path: Path, make_read_only: Callable[[Path], None]
) -> None:
    store = PreferencesFile(path)
    store.save(SAMPLE)
    before = path.read_bytes()
    make_read_only(path.parent)
    with pytest.raises(UserError) as caught:
        store.save(Preferences())
    assert str(path) in caught.value.detail
    assert path.read_bytes() == before
    assert store.load() == SAMPLE
    path.write_text("broken =")
    assert store.load() == Preferences()
    assert store.notice is not None
    with pytest.raises(UserError):
        store.save(SAMPLE)
    assert path.read_text() == "broken ="


def test_a_failing_disk_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = PreferencesFile(path)
    store.save(SAMPLE)
    before = path.read_bytes()

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(UserError, match="No space left"):
        store.save(Preferences())
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["settings.toml"]


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_kill_before_the_replacement_leaves_the_old_file(path: Path) -> None:
    PreferencesFile(path).save(SAMPLE)
    before = path.read_bytes()
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from slipstream.chat.preferences import Preferences\n"
        "from slipstream.storage.preferences_file import PreferencesFile\n"
        "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "PreferencesFile(Path(sys.argv[1])).save(Preferences(theme='light'))\n"
    )
    package_root = Path(preferences_file.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        env=os.environ | {"PYTHONPATH": str(package_root)},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == before
    store = PreferencesFile(path)
    assert store.load() == SAMPLE
    assert store.notice is None
    store.save(Preferences(theme="light"))
    assert store.load() == Preferences(theme="light")
