"""The preferences as a TOML file that people may edit by hand; their comments and keys are kept."""

from __future__ import annotations

import json
import logging
import os
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipstream.chat.preferences import LARGEST_TEXT, MAX_THREADS, SMALLEST_TEXT, Preferences
from slipstream.errors import UserError
from slipstream.storage.whole_file import write_whole

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_log = logging.getLogger(__name__)

THEMES = ("system", "light", "dark")

_ESCAPED = "$escaped"


class PreferencesFile:
    """A `PreferenceStore` over one TOML file, written by replacing it whole.

    TOML has no null and one kind of list: None values are left out, and every list is read as a
    tuple. A text with lone surrogates (a path that is not Unicode) is written as an inline table
    {"$escaped" = "..."}. The tables `sampler` and `template_variables` mirror their mappings.

    `notice` says what was wrong with the file, None when nothing was.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.notice: UserError | None = None

    def load(self) -> Preferences:
        """The preferences as saved; defaults for what is missing or unusable. Never raises.

        A file that is not TOML is set aside as `settings.toml.broken-1`, -2, … and told of.
        """
        self.notice = None
        try:
            return _preferences(_parsed(self._path))
        except FileNotFoundError:
            pass
        except OSError as error:
            self.notice = UserError(
                "The settings cannot be read; the defaults are used.",
                f"{self._path}: {error.strerror or error}.",
                "Check the permissions of the file.",
            )
        except (ValueError, RecursionError) as error:
            self.notice = self._set_aside_notice(error)
        return Preferences()

    def save(self, preferences: Preferences) -> None:
        """Write them atomically; comments and unknown keys in the file are kept.

        Raises `UserError` when the file cannot be written; the old one is then still there.
        """
        try:
            write_whole(self._path, self._merged(preferences).encode())
        except OSError as error:
            raise UserError(
                "The settings cannot be saved.",
                f"{self._path}: {error.strerror or error}.",
                "Check the permissions of the file and its folder, and the free space.",
            ) from error

    def _merged(self, preferences: Preferences) -> str:
        """The file's text with the preferences in it."""
        wanted = {
            item.name: _to_toml(getattr(preferences, item.name)) for item in fields(preferences)
        }
        try:
            present = _parsed(self._path)
        except FileNotFoundError:
            present = {}
        except (ValueError, RecursionError):
            set_aside(self._path)
            present = {}
        expected = present | wanted
        try:
            text = _edited(self._path, present, wanted)
            if _same(tomllib.loads(text), expected):
                return text
        except FileNotFoundError:
            pass
        except OSError:
            raise
        except Exception:  # whatever an unusual layout makes tomlkit do, the values come first
            _log.warning("the settings file is laid out anew", exc_info=True)
        return _laid_out(expected)

    def _set_aside_notice(self, cause: Exception) -> UserError:
        reason = " ".join(str(cause).split()) or type(cause).__name__
        try:
            where = set_aside(self._path)
        except OSError as error:
            return UserError(
                "The settings file is damaged; the defaults are used.",
                f"{self._path}: {reason}. It cannot be moved aside: {error.strerror or error}.",
                "Correct it or check the permissions of its folder.",
            )
        return UserError(
            "The settings file was damaged; the defaults are used.",
            f"{self._path}: {reason}.",
            f"It was kept as {where.name}; correct it there and move it back, or ignore it.",
        )


def set_aside(path: Path) -> Path:
    """Rename the file to the first free name with ".broken-1", -2, … added. Raises `OSError`."""
    number = 1
    while True:
        aside = path.with_name(f"{path.name}.broken-{number}")
        try:
            # taking the name first: a rename would silently replace an older broken file
            os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            number += 1
            continue
        try:
            os.replace(path, aside)
        except OSError:
            aside.unlink()
            raise
        return aside


def _parsed(path: Path) -> dict[str, Any]:
    # tomllib rather than tomlkit: strict, and it keeps tomlkit out of the start
    return tomllib.loads(_decoded(path))


def _decoded(path: Path) -> str:
    return path.read_bytes().decode("utf-8-sig")


def _preferences(content: Mapping[str, Any]) -> Preferences:
    """The values that fit; each other one is replaced by its default."""
    usable: dict[str, Any] = {}
    for item in fields(Preferences):
        if item.name not in content:
            continue
        value = _from_toml(content[item.name])
        if _fits(item.name, value):
            usable[item.name] = value
        else:
            _log.warning("the setting %s has an unusable value", item.name)
    return Preferences(**usable)


def _fits(name: str, value: object) -> bool:
    default = getattr(Preferences(), name)
    if name == "theme":
        return value in THEMES
    if name == "n_ctx":
        return type(value) is int and 0 <= value < 2**32  # as wide as llama.cpp's own
    if name in ("n_threads", "n_threads_batch"):
        return type(value) is int and 0 <= value <= MAX_THREADS
    if name == "reading_px":
        return type(value) is int and SMALLEST_TEXT <= value <= LARGEST_TEXT
    if isinstance(default, tuple):
        return isinstance(value, tuple) and all(isinstance(item, str) for item in value)
    return isinstance(value, type(default))


def _to_toml(value: object) -> Any:
    """Plain values that TOML can hold; what it cannot is left out of its list or table."""
    if isinstance(value, str):
        return str(value) if _is_unicode(value) else {_ESCAPED: _escaped(value)}
    if isinstance(value, Mapping):
        plain = {str(key): _to_toml(item) for key, item in value.items() if _is_unicode(str(key))}
        return {key: item for key, item in plain.items() if item is not None}
    if isinstance(value, (tuple, list)):
        return [plain for item in value if (plain := _to_toml(item)) is not None]
    if isinstance(value, (bool, int, float, datetime, date, time)):
        return value
    if value is not None:
        _log.warning("a setting of type %s cannot be saved", type(value).__name__)
    return None


def _from_toml(value: object) -> object:
    if isinstance(value, dict):
        if value.keys() == {_ESCAPED} and isinstance(value[_ESCAPED], str):
            return _unescaped(value[_ESCAPED])
        return {key: _from_toml(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(_from_toml(item) for item in value)
    return value


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _escaped(text: str) -> str:
    return text.encode("unicode_escape").decode("ascii")


def _unescaped(text: str) -> str:
    try:
        return text.encode("ascii").decode("unicode_escape")
    except UnicodeError:
        return text


def _edited(path: Path, present: dict[str, Any], wanted: dict[str, Any]) -> str:
    """The file's own text with only those values changed that differ."""
    import tomlkit

    document = tomlkit.parse(_decoded(path))
    for name, value in wanted.items():
        _edit(document, name, present, value)
    return tomlkit.dumps(document)


def _edit(table: Any, name: str, present: dict[str, Any], value: Any) -> None:
    old = present.get(name)
    if name in present and _same(old, value):
        return
    if isinstance(old, dict) and isinstance(value, dict):
        for key in old.keys() - value.keys():
            del table[name][key]
        for key, item in value.items():
            _edit(table[name], key, old, item)
    else:
        table[name] = value


def _laid_out(content: dict[str, Any]) -> str:
    """A new file with these values."""
    import tomlkit

    document: TOMLDocument = tomlkit.document()
    document.add(tomlkit.comment("Settings of Slipstream; comments and keys of your own are kept."))
    for name, value in content.items():
        document[name] = value
    return tomlkit.dumps(document)


def _same(one: object, other: object) -> bool:
    """Equal in value and type (1, 1.0 and true differ; nan equals itself)."""
    return json.dumps(one, sort_keys=True, default=repr) == json.dumps(
        other, sort_keys=True, default=repr
    )
