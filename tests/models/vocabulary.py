"""Tiny vocabularies for the tiny models."""

from __future__ import annotations

import string
from dataclasses import dataclass, replace

from gguf import GGUFWriter, TokenType

BOS, EOS, UNKNOWN = 1, 2, 0
FIRST_BYTE = 3
"""Byte tokens <0x00> to <0xFF> follow the three special tokens."""

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass(frozen=True)
class Vocabulary:
    """Tokens with scores and types, by id, and the special ids (None: key not written)."""

    model: str
    tokens: tuple[str, ...]
    scores: tuple[float, ...]
    types: tuple[int, ...]
    bos: int | None = None
    eos: int | None = None
    unknown: int | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    def with_token(self, index: int, text: str) -> Vocabulary:
        """The same vocabulary with another text for one token."""
        return replace(self, tokens=(*self.tokens[:index], text, *self.tokens[index + 1 :]))

    def write(self, writer: GGUFWriter) -> None:
        """Write every tokenizer key but the flags and the chat template."""
        writer.add_vocab_size(len(self.tokens))
        writer.add_tokenizer_model(self.model)
        writer.add_token_list(list(self.tokens))
        writer.add_token_scores(list(self.scores))
        writer.add_token_types(list(self.types))
        for add, index in (
            (writer.add_bos_token_id, self.bos),
            (writer.add_eos_token_id, self.eos),
            (writer.add_unk_token_id, self.unknown),
        ):
            if index is not None:
                add(index)


def spm_vocabulary() -> Vocabulary:
    """A SentencePiece vocabulary for any text: special ids, 256 bytes, pieces, letters, ChatML.

    The ChatML markers are control tokens; llama.cpp takes <|im_end|> for the end of a turn.
    """
    pieces = ["▁t", "▁th", "▁the", "he", "in", "er", "an", "▁a", "▁s", "on", "re", "▁w"]
    letters = ["▁", *string.ascii_letters, *string.digits, *".,:;!?'\"-"]
    tokens = ["<unk>", "<s>", "</s>"]
    scores = [0.0, 0.0, 0.0]
    types = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL]
    for byte in range(256):
        tokens.append(f"<0x{byte:02X}>")
        scores.append(0.0)
        types.append(TokenType.BYTE)
    for rank, piece in enumerate([*pieces, *letters]):
        tokens.append(piece)
        scores.append(-float(rank))
        types.append(TokenType.NORMAL)
    for marker in ("<|im_start|>", "<|im_end|>"):
        tokens.append(marker)
        scores.append(0.0)
        types.append(TokenType.CONTROL)
    return Vocabulary(
        "llama", tuple(tokens), tuple(scores), tuple(types), bos=BOS, eos=EOS, unknown=UNKNOWN
    )


def bare_vocabulary(size: int = 128) -> Vocabulary:
    """llama.cpp's "test" vocabulary: no text can be tokenised, and there is no BOS and no EOS."""
    return Vocabulary(
        "test",
        tuple(f"tok_{index}" for index in range(size)),
        (0.0,) * size,
        (TokenType.NORMAL,) * size,
    )
