"""Where the app keeps its files: a folder the user gave, or the places the system has."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from slipstream.errors import UserError

APP_NAME = "slipstream"


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """The folders of settings, chats, logs and passing state. Reading a path creates nothing;
    whoever writes into a folder makes it with `make_folder` first."""

    config_dir: Path
    data_dir: Path
    log_dir: Path
    state_dir: Path  # locks and sockets of a running app

    @property
    def settings_file(self) -> Path:
        """The preferences, TOML."""
        return self.config_dir / "settings.toml"

    @property
    def chats_file(self) -> Path:
        """The chats, SQLite."""
        return self.data_dir / "chats.db"

    @property
    def measurements_file(self) -> Path:
        """What was measured on this machine, JSON."""
        return self.data_dir / "measurements.json"

    def check(self) -> None:
        """Make every folder and write into it. Raises `UserError` naming the one that fails."""
        for folder in dict.fromkeys((self.config_dir, self.data_dir, self.log_dir, self.state_dir)):
            make_folder(folder)
            try:
                with tempfile.TemporaryFile(dir=folder) as probe:
                    probe.write(b"\0")
            except OSError as error:
                raise _folder_error(folder, error, "written to") from error


def data_directory(override: Path | None = None) -> DataDirectory:
    """The folders below `override`, or those of the system for this user when it is None."""
    if override is not None:
        root = _absolute(override)
        return DataDirectory(
            config_dir=root, data_dir=root, log_dir=root / "logs", state_dir=root / "state"
        )
    return DataDirectory(
        config_dir=Path(platformdirs.user_config_dir(APP_NAME, appauthor=False)),
        data_dir=Path(platformdirs.user_data_dir(APP_NAME, appauthor=False)),
        log_dir=Path(platformdirs.user_log_dir(APP_NAME, appauthor=False)),
        state_dir=Path(platformdirs.user_state_dir(APP_NAME, appauthor=False)),
    )


def make_folder(folder: Path) -> None:
    """Make the folder and its missing parents, for this user only (mode 0700); leave existing ones
    as they are. Raises `UserError` naming the folder."""
    try:
        _make(folder)
    except OSError as error:
        raise _folder_error(folder, error, "created") from error


def _make(folder: Path) -> None:
    if folder.is_dir():
        return
    if folder.parent != folder:
        _make(folder.parent)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not folder.is_dir():  # another process may have made it meanwhile
            raise


def _absolute(path: Path) -> Path:
    with suppress(RuntimeError):  # "~name" of nobody is the folder's own name
        path = path.expanduser()
    return Path(os.path.abspath(path))


def _folder_error(folder: Path, error: OSError, what: str) -> UserError:
    reason = error.strerror or str(error)
    return UserError(
        f"The folder {folder} cannot be {what}.",
        f"{reason}.",
        "Check its permissions and the free space, or choose another folder with --data-dir.",
    )
