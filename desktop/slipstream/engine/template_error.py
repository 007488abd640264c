"""The error of a chat template that cannot be read or refuses to be filled in."""

from __future__ import annotations

from slipstream.errors import UsageError


class TemplateError(UsageError):
    """A chat template that cannot be used; exit code 2.

    `line` and `column` count from 1 and are None where the error has no place in the source.
    Jinja reports lines only: the column is that of the token its message names, or else of the
    first character of the line that is not blank.
    """

    def __init__(
        self,
        title: str,
        detail: str = "",
        hint: str = "",
        *,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(title, detail, hint)
        self.line = line
        self.column = column
