from __future__ import annotations

import pytest

from slipstream.engine.prompt import prompt_tokens

BOS = 1


class Tokenizer:
    def __init__(self, *, adds_bos: bool) -> None:
        self.bos = BOS
        self.adds_bos = adds_bos

    def tokenize(self, text: str, *, parse_special: bool = True) -> list[int]:
        assert parse_special
        return [int(word) for word in text.split()]


@pytest.mark.parametrize(
    ("adds_bos", "text", "tokens"),
    [
        (True, "7 8", (BOS, 7, 8)),
        (True, "1 7 8", (BOS, 7, 8)),  # the template wrote it
        (True, "1 1 7", (BOS, 7)),  # and the user repeated it
        (True, "7 1 8", (BOS, 7, 1, 8)),  # one further on belongs to the text
        (True, "", (BOS,)),
        (True, "1", (BOS,)),
        (False, "7 8", (7, 8)),
        (False, "1 7", (1, 7)),  # ChatML's <|im_start|> may be the BOS by name only
        (False, "", ()),
    ],
)
def test_exactly_one_bos(adds_bos: bool, text: str, tokens: tuple[int, ...]) -> None:
    assert prompt_tokens(Tokenizer(adds_bos=adds_bos), text) == tokens
