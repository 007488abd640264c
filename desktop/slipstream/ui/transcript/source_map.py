"""Markdown tokens that know where in their source their words stand. Knows nothing of Qt."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

_OFFSET = "offset"  # where, in the inline source, the token's rule began
_JOINING_RULES = ("text_join", "fragments_join")  # would leave joined tokens without their offsets


def source_mapped(preset: str, options: dict[str, Any]) -> MarkdownIt:
    """A parser whose inline text tokens can be asked for `content_offsets`.

    Adjacent text stays in separate tokens, of type `text` or `text_special`.
    """
    parser = MarkdownIt(preset, options)
    parser.inline = _SourceMappedInline()
    parser.configure(preset, options)
    parser.disable(_JOINING_RULES)
    return parser


def content_offsets(token: Token, source: str) -> range | None:
    """Where each character of an inline token's content stands in the inline source.

    What is spelled in another way, an entity or an escape, stands where its spelling ends, and
    the range then has one element. None for what the source does not hold.
    """
    offset = token.meta.get(_OFFSET)
    if offset is None:
        return None
    if token.type == "text_special":
        last = offset + len(token.markup) - 1
        return range(last, last + 1)
    latest = offset + len(token.markup) + 1  # behind the backticks and one space, or behind a <
    shown = source.replace("\n", " ") if token.type == "code_inline" else source
    start = shown.find(token.content, offset + len(token.markup), latest + len(token.content))
    return range(start, start + len(token.content)) if start >= 0 else None


class _SourceMappedState(StateInline):
    """Notes where the pending text began and where a rule stood when it pushed a token.

    Rules append to the pending text, and push, before they move on; pending text is always one
    unbroken stretch of the source.
    """

    _pending_at = 0

    def append_pending(self, text: str) -> None:
        if not self.pending:
            self._pending_at = self.pos
        super().append_pending(text)

    def pushPending(self) -> Token:
        token = super().pushPending()
        token.meta[_OFFSET] = self._pending_at
        return token

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        token = super().push(ttype, tag, nesting)
        before = self.tokens[-2] if len(self.tokens) > 1 else None
        offset = self.pos
        if before is not None and before.type == ttype == "text":
            # the markers of one run are pushed one by one from the same place
            offset = max(offset, before.meta.get(_OFFSET, 0) + len(before.content))
        token.meta[_OFFSET] = offset
        return token


class _SourceMappedInline(ParserInline):
    def parse(
        self, src: str, md: MarkdownIt, env: MutableMapping[str, Any], tokens: list[Token]
    ) -> list[Token]:
        state = _SourceMappedState(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens
