"""The tiny models of the tests load and run in llama.cpp."""

from __future__ import annotations

from pathlib import Path

import llama_cpp.llama_cpp as lib

from models.tiny_llama import build_markov_llama, build_other_vocabulary_llama, build_tiny_llama
from models.vocabulary import CHATML, bare_vocabulary, spm_vocabulary
from slipstream.engine.gguf import read_strings


def tokenize(vocab: object, text: str) -> list[int]:
    """The ids of `text`, marker tokens recognised, with whatever the vocabulary adds."""
    room = (lib.llama_token * 256)()
    raw = text.encode()
    count = lib.llama_tokenize(vocab, raw, len(raw), room, 256, True, True)
    assert count >= 0
    return list(room[:count])


def run(path: Path, texts: list[str], tokens: list[int]) -> tuple[list[list[int]], list[int]]:
    """Load the model; return the ids of `texts` and the likeliest successor after each token."""
    lib.llama_backend_init()
    params = lib.llama_model_default_params()
    model = lib.llama_model_load_from_file(str(path).encode(), params)
    assert model
    context = None
    batch = None
    try:
        vocab = lib.llama_model_get_vocab(model)
        ids = [tokenize(vocab, text) for text in texts]
        settings = lib.llama_context_default_params()
        settings.n_ctx, settings.n_threads, settings.n_threads_batch = 64, 1, 1
        context = lib.llama_init_from_model(model, settings)
        assert context
        batch = lib.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for row, token in enumerate(tokens):
            batch.token[row], batch.pos[row], batch.logits[row] = token, row, 1
            batch.n_seq_id[row], batch.seq_id[row][0] = 1, 0
        assert lib.llama_decode(context, batch) == 0
        size = lib.llama_vocab_n_tokens(vocab)
        rows = [lib.llama_get_logits_ith(context, row) for row in range(len(tokens))]
        best = [max(range(size), key=lambda index, row=row: row[index]) for row in rows]
        return ids, best
    finally:
        if batch is not None:
            lib.llama_batch_free(batch)
        if context is not None:
            lib.llama_free(context)
        lib.llama_model_free(model)


def test_tiny_llama_tokenises_any_text_and_answers(tmp_path: Path) -> None:
    path = build_tiny_llama(tmp_path / "tiny.gguf", chat_template=CHATML, add_bos=True)
    vocabulary = spm_vocabulary()
    texts = ["the 😀", "<|im_start|>", ""]
    ids, best = run(path, texts, [1, 300, 301, 300])
    assert [vocabulary.tokens[i] for i in ids[0]] == [
        "<s>", "▁the", "▁", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>",
    ]  # fmt: skip
    assert vocabulary.tokens[ids[1][-1]] == "<|im_start|>"
    assert ids[2] == [1]
    assert len(best) == 4


def test_markov_llama_forgets_what_came_before(tmp_path: Path) -> None:
    path = build_markov_llama(tmp_path / "markov.gguf")
    _, first = run(path, [], [300, 301, 302, 300])
    _, second = run(path, [], [5, 6, 7, 302, 301, 300])
    assert first[0] == first[3] == second[5]
    assert (first[1], first[2]) == (second[4], second[3])


def test_seed_makes_the_model(tmp_path: Path) -> None:
    one = build_tiny_llama(tmp_path / "1.gguf", seed=1).read_bytes()
    again = build_tiny_llama(tmp_path / "again.gguf", seed=1).read_bytes()
    other = build_tiny_llama(tmp_path / "2.gguf", seed=2).read_bytes()
    assert one == again
    assert one != other


def test_bare_vocabulary_loads_without_special_tokens(tmp_path: Path) -> None:
    path = build_tiny_llama(tmp_path / "bare.gguf", vocabulary=bare_vocabulary())
    _, best = run(path, [], [1, 2, 3])
    assert all(0 <= token < 128 for token in best)


def test_other_vocabulary_differs_in_one_token(tmp_path: Path) -> None:
    tokens = read_strings(build_tiny_llama(tmp_path / "a.gguf"), "tokenizer.ggml.tokens")
    others = read_strings(
        build_other_vocabulary_llama(tmp_path / "b.gguf"), "tokenizer.ggml.tokens"
    )
    assert [i for i, pair in enumerate(zip(tokens, others, strict=True)) if len(set(pair)) > 1] == [
        300
    ]
