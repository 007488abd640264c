from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from slipstream.errors import UserError
from slipstream.storage.data_dir import DataDirectory, data_directory, make_folder


def folders(data: DataDirectory) -> list[Path]:
    return [data.config_dir, data.data_dir, data.log_dir, data.state_dir]


def test_an_override_holds_everything_and_nothing_is_made_early(tmp_path: Path) -> None:
    root = tmp_path / "ключ 🔑" / "data"
    data = data_directory(root)
    paths = [*folders(data), data.settings_file, data.chats_file]
    assert all(path == root or root in path.parents for path in paths)
    assert not root.parent.exists()


def test_folders_are_made_for_this_user_only(tmp_path: Path) -> None:
    data = data_directory(tmp_path / "a" / "b")
    data.check()
    assert all(folder.is_dir() and not list(folder.glob("*.tmp")) for folder in folders(data))
    if os.name == "posix":
        for folder in (*folders(data), tmp_path / "a"):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    data.check()


def test_an_existing_folder_keeps_its_mode(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    folder.chmod(0o755)
    make_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) & 0o700 == 0o700
    if os.name == "posix":
        assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("x")
    for root in (blocker, blocker / "below"):
        with pytest.raises(UserError) as caught:
            data_directory(root).check()
        assert str(blocker) in caught.value.title
        assert "--data-dir" in caught.value.hint
    assert blocker.read_text() == "x"


def test_a_read_only_folder_is_named(tmp_path: Path, read_only: Path) -> None:
    with pytest.raises(UserError) as caught:
        data_directory(read_only).check()
    assert str(read_only) in caught.value.title
    with pytest.raises(UserError):
        data_directory(read_only / "below").check()


def test_a_relative_or_home_override_becomes_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert data_directory(Path("x/../y")).data_dir == tmp_path / "y"
    assert data_directory(Path("~/z")).data_dir == tmp_path / "z"
    assert data_directory(Path("~no such user~")).data_dir == tmp_path / "~no such user~"


def test_without_an_override_the_system_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    data = data_directory()
    assert data.settings_file.name == "settings.toml"
    assert data.chats_file.name == "chats.db"
    assert all(folder.is_absolute() and "slipstream" in str(folder) for folder in folders(data))
