"""Streaming detokenisation of llama.cpp's own tokenisation cases gives back their input."""

from __future__ import annotations

from pathlib import Path

import pytest

from slipstream.engine.detokenizer import Detokenizer, Pieces
from slipstream.engine.llama import Model, lib

SEPARATOR = "\n__ggml_vocab_test__\n"
FOLDER = Path(__file__).resolve().parents[2] / ".cache" / "llama.cpp" / "vocab"
NAMES = (
    "aquila", "command-r", "deepseek-coder", "deepseek-llm", "falcon", "gemma-4", "gpt-2",
    "gpt-neox", "llama-bpe", "llama-spm", "mpt", "phi-3", "qwen2", "qwen35", "refact", "starcoder",
)  # fmt: skip
WITHOUT_CASES = {"aquila", "gpt-neox"}  # their files come without .inp and .out


def cases_of(name: str) -> list[tuple[str, list[int]]]:
    path = FOLDER / f"ggml-vocab-{name}.gguf"
    texts = Path(f"{path}.inp").read_text(encoding="utf-8").split(SEPARATOR)
    lines = Path(f"{path}.out").read_text(encoding="utf-8").split("\n")
    return list(zip(texts, [[int(word) for word in line.split()] for line in lines], strict=False))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_CASES])
def test_every_output_streams_back_to_its_input(name: str, llama_cpp_files: Path) -> None:
    model = Model(FOLDER / f"ggml-vocab-{name}.gguf", vocab_only=True)
    try:
        pieces = Pieces(model)
        sentence_piece = lib.llama_vocab_type(model.vocab) == lib.LLAMA_VOCAB_TYPE_SPM
        cases = cases_of(name)
        assert len(cases) > 30
        for text, tokens in cases:
            detokenizer = Detokenizer(pieces)
            streamed = "".join(map(detokenizer.feed, tokens)) + detokenizer.finish()
            if sentence_piece and streamed.startswith(" "):
                streamed = streamed[1:]  # the space SentencePiece puts before a text
            assert streamed == text
            assert model.tokenize(text) == tokens
    finally:
        model.close()
