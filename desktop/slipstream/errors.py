"""The errors people see: what happened, to which file or setting, and what to try.

Every layer raises these; the window shows them in its notice strip and the command line turns
them into an exit code. They carry words, never widgets or exit calls.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the `slipstream` command; a public contract."""

    FINE = 0
    INTERNAL = 1
    USAGE = 2
    UNUSABLE_MODEL = 3
    DRAFT_MISFIT = 4
    NOT_ENOUGH_MEMORY = 5
    INTERRUPTED = 130


class UserError(Exception):
    """An error with words for the person in front of the screen.

    `title` says what happened in one short sentence, `detail` to which file or setting and why,
    `hint` what to try; `detail` and `hint` may be empty.
    """

    exit_code: ExitCode = ExitCode.INTERNAL

    def __init__(self, title: str, detail: str = "", hint: str = "") -> None:
        super().__init__(title)
        self.title = title
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        return " ".join(part for part in (self.title, self.detail, self.hint) if part)


class UsageError(UserError):
    """A flag, a setting, a grammar, a template or a message list that cannot be used."""

    exit_code = ExitCode.USAGE


class ModelFileError(UserError):
    """A model file that is missing, damaged or not of a kind that can chat."""

    exit_code = ExitCode.UNUSABLE_MODEL


class DraftMisfit(UserError):
    """A draft that cannot work with the chosen target."""

    exit_code = ExitCode.DRAFT_MISFIT


class ContextSizeError(UserError):
    """The prompt does not fit the context window, or memory does not suffice for it."""

    exit_code = ExitCode.NOT_ENOUGH_MEMORY


class Interrupted(UserError):
    """Ctrl-C came before there was anything to show."""

    exit_code = ExitCode.INTERRUPTED

    def __init__(self) -> None:
        super().__init__("Interrupted.", "Nothing was generated yet.")


class EngineError(UserError):
    """llama.cpp refused to go on for a reason nobody outside can mend."""

    exit_code = ExitCode.INTERNAL


def internal_fault(error: Exception) -> EngineError:
    """Words for a fault nobody foresaw."""
    return EngineError(
        "Something went wrong inside Slipstream.",
        f"{type(error).__name__}: {error}",
        "Try again. If it happens again, please report it with the log.",
    )
