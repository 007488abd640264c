"""Prompt text to token ids, with the right number of BOS tokens."""

from __future__ import annotations

from typing import Protocol


class Tokenizer(Protocol):
    """What a prompt needs of a model."""

    bos: int
    adds_bos: bool

    def tokenize(self, text: str, *, parse_special: bool = True) -> list[int]:
        """Token ids of the text without any BOS of the vocabulary's own."""


def prompt_tokens(tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    """The ids of a prompt: exactly one BOS where the vocabulary wants one.

    Many templates write the BOS themselves, some vocabularies add one, and both together would
    give two. Where the vocabulary wants none, what the template wrote stands as it is.
    """
    tokens = tokenizer.tokenize(text)
    if not tokenizer.adds_bos:
        return tuple(tokens)
    body = len(tokens)
    for index, token in enumerate(tokens):
        if token != tokenizer.bos:
            body = index
            break
    return (tokenizer.bos, *tokens[body:])
