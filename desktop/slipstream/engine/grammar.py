"""What is refused in a GBNF grammar before llama.cpp sees it, because it would not come back."""

from __future__ import annotations

import re

from slipstream.errors import UsageError

_DEEPEST = 200
"""Brackets inside brackets: llama.cpp calls itself for each and has no limit of its own, and a
thread of the window may have no more than 512 kB of stack."""

_OPAQUE = re.compile(
    r"""
    " (?: \\. | [^"\\] )* (?: " | $ )        # a text
    | \[ (?: \\. | [^\]\\] )* (?: \] | $ )   # a set of characters
    | < [^>\s]* >                            # a token
    | \# [^\r\n]*                            # a comment
    """,
    re.VERBOSE | re.DOTALL,
)
_REPETITION = re.compile(r"\{\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\}")


def check_grammar(grammar: str) -> None:
    """Raise `UsageError` for what makes llama.cpp crash or compute for ever; it checks the rest."""
    bare = _OPAQUE.sub(" ", grammar)
    for found in _REPETITION.finditer(bare):
        least, most = int(found[1]), int(found[2])
        if most < least:
            raise UsageError(
                "The grammar cannot be used.",
                f"The repetition {{{least},{most}}} asks for at least {least} and at most {most}.",
                "Write the smaller number first.",
            )
    depth = 0
    for character in bare:
        depth += (character == "(") - (character == ")")
        if depth > _DEEPEST:
            raise UsageError(
                "The grammar cannot be used.",
                f"Its brackets are nested more than {_DEEPEST} deep.",
                "Give inner parts rules of their own.",
            )
