"""The native wrappers: abort flag, loading, cancelling, closing, logging."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from models.tiny_llama import build_tiny_llama
from slipstream.engine import llama
from slipstream.engine.llama import AbortFlag, Context, ContextSettings, LoadCancelled, Model
from slipstream.engine.requests import LoadRequest
from slipstream.engine.target import Target
from slipstream.errors import ContextSizeError, EngineError, ModelFileError


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return build_tiny_llama(tmp_path / "tiny.gguf")


def test_the_abort_callback_reads_the_flag() -> None:
    flag = AbortFlag()
    assert not flag.callback(flag.data)
    flag.set()
    assert flag.is_set()
    assert flag.callback(flag.data)
    flag.clear()
    assert not flag.is_set()
    assert not flag.callback(flag.data)


def test_loading_reports_progress(tiny: Path) -> None:
    seen: list[float] = []
    model = Model(tiny, progress=lambda fraction: seen.append(fraction) or True)
    model.close()
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_loading_can_be_cancelled(tiny: Path) -> None:
    with pytest.raises(LoadCancelled):
        Model(tiny, progress=lambda fraction: False)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF" + bytes(33), b"no model at all" * 9])
def test_a_damaged_file_is_an_error_with_words(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        Target(LoadRequest(path))
    assert "bad.gguf" in caught.value.title


def test_a_model_without_a_decoder_is_refused(llama_cpp_files: Path) -> None:
    with pytest.raises(ModelFileError):
        Target(LoadRequest(llama_cpp_files / "vocab" / "ggml-vocab-bert-bge.gguf"))


def test_closing_twice_is_harmless_and_use_after_it_raises(tiny: Path) -> None:
    model = Model(tiny)
    context = Context(model, ContextSettings(n_ctx=64), AbortFlag())
    context.close()
    context.close()
    model.close()
    model.close()
    for use in (context.length, context.clear, lambda: model.tokenize("a")):
        with pytest.raises(EngineError, match="closed"):
            use()


def test_a_context_that_memory_cannot_hold_is_an_error_with_words(tiny: Path) -> None:
    model = Model(tiny)
    try:
        with pytest.raises(ContextSizeError, match="context") as caught:
            Context(model, ContextSettings(n_ctx=2**31 - 1), AbortFlag())
        assert caught.value.hint
    finally:
        model.close()


def test_text_of_any_kind_can_be_tokenised(tiny: Path) -> None:
    model = Model(tiny)
    try:
        for text in ("", "a", "\0", "é😀", "a" * 5000, "\ud800 lone", "<|im_end|>"):
            tokens = model.tokenize(text)
            assert all(0 <= token < model.n_vocab for token in tokens)
        assert model.tokenize("<|im_end|>") != model.tokenize("<|im_end|>", parse_special=False)
    finally:
        model.close()


def test_the_native_log_goes_to_logging_and_to_the_ring(
    tiny: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG, logger="llama.cpp"):
        Model(tiny).close()
    assert any("general.architecture" in line for line in llama.recent_log())
    assert any("general.architecture" in record.message for record in caplog.records)
    assert capfd.readouterr().err == ""


def test_default_threads_are_within_what_the_process_may_use() -> None:
    assert llama.default_threads() >= 1
