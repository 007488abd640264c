"""The only door to llama.cpp: models, contexts and batches with an explicit `close()`.

Owns the low-level bindings, the native log and the abort flag. Nothing relies on `__del__`: what
is opened here is closed by its owner, contexts before their model.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import psutil  # type: ignore[import-untyped]
from numpy.typing import NDArray

from slipstream.engine.attention_shape import AttentionShape
from slipstream.engine.cache_type import CacheType
from slipstream.engine.file_role import held_mtp_layers
from slipstream.engine.machine import usable_cores
from slipstream.engine.model_parts import read_parts
from slipstream.engine.native_symbols import NativeSymbols
from slipstream.engine.spinning import short_spinning
from slipstream.errors import ContextSizeError, EngineError, ModelFileError

with short_spinning():
    import llama_cpp.llama_cpp as _bindings

lib = _bindings  # for the sampler chain, which fills native structures of its own

symbols = NativeSymbols(_bindings._lib)
"""The functions of the same library that its bindings lack."""

log = logging.getLogger("llama.cpp")
log.addHandler(logging.NullHandler())  # without a log file, its warnings are not for standard error

DEFAULT_CONTEXT = 8192
"""Context size in tokens where nobody chose one and the model was trained for as much."""

DEFAULT_BATCH = 512
"""Prompt tokens per prefill chunk: large enough to be fast, small enough for lively progress."""

ROLLBACK = 8
"""Tokens a recurrent state can take back unless told otherwise; each costs a copy of the state."""

_KV_BYTES = 2 * 2  # a key and a value, F16

_MOST_VIEWS = 256  # of rows of logits; a batch to verify has far fewer

_MOST_SCORE_BYTES = 1 << 29  # that attention may hold at once before flash attention is used

# ggml_log_level in ggml.h; the table in llama-cpp-python itself is off by one
_LEVELS = {1: logging.DEBUG, 2: logging.INFO, 3: logging.WARNING, 4: logging.ERROR}
_CONTINUED = 5  # GGML_LOG_LEVEL_CONT: the rest of the line before
_RECENT: deque[tuple[int, str]] = deque(maxlen=400)


@lib.llama_log_callback  # type: ignore[untyped-decorator]
def _receive_log(level: int, text: bytes, _user_data: Any) -> None:
    """Route a native log line to `logging` and remember it for error reports."""
    words = text.decode("utf-8", "replace").rstrip("\n")
    if level == _CONTINUED and _RECENT:
        before, line = _RECENT[-1]
        _RECENT[-1] = (before, line + words)
        return
    if not words:
        return
    severity = _LEVELS.get(level, logging.DEBUG)
    _RECENT.append((severity, words))
    # llama.cpp's "info" is a developer's detail here
    log.log(logging.DEBUG if severity == logging.INFO else severity, "%s", words)


lib.llama_log_set(_receive_log, ctypes.c_void_p(0))
lib.llama_backend_init()


def recent_log(minimum: int = logging.DEBUG) -> tuple[str, ...]:
    """The latest lines llama.cpp logged at this level or above, oldest first."""
    return tuple(line for level, line in _RECENT if level >= minimum)


def system_info() -> str:
    """What the loaded CPU backend can use, e.g. "CPU : AVX2 = 1 | ..."."""
    return bytes(lib.llama_print_system_info()).decode("utf-8", "replace").strip()


def _last_complaint() -> str:
    """The latest error or warning of llama.cpp as one sentence, "" when there is none."""
    lines = recent_log(logging.ERROR) or recent_log(logging.WARNING)
    return lines[-1].strip() if lines else ""


class LoadCancelled(Exception):
    """The loading of a model was cancelled through its progress callback."""


class AbortFlag:
    """A flag that stops a running decode from any thread.

    llama.cpp asks its abort callback once per graph node; a Python callback would need the
    interpreter lock each time. So the callback is libc's `atoi` over a one-digit string, and
    raising the flag writes that digit.
    """

    def __init__(self) -> None:
        library = ctypes.CDLL("msvcrt") if sys.platform == "win32" else ctypes.CDLL(None)
        address = ctypes.cast(library.atoi, ctypes.c_void_p).value
        assert address is not None
        self._digit = ctypes.create_string_buffer(b"0")
        self.callback = lib.ggml_abort_callback(address)
        self.data = ctypes.cast(self._digit, ctypes.c_void_p)

    def set(self) -> None:
        """Stop what is decoding now and refuse what comes, until cleared."""
        self._digit[0] = b"1"

    def clear(self) -> None:
        """Allow decoding again."""
        self._digit[0] = b"0"

    def is_set(self) -> bool:
        """Whether decoding shall stop."""
        return bool(self._digit[0] == b"1")


class Model:
    """A loaded GGUF model and its vocabulary; `path` may be any part of a split one.

    Raises `ModelFileError` when the file is missing, damaged or of a kind that cannot generate
    text, and `LoadCancelled` when `progress` (called with 0.0 to 1.0) returned False. With
    `load_mtp` its MTP layers are loaded too; None: if it has any. `head` says that it is an
    EAGLE-3 head, which is no chat model. `n_gpu_layers` go to the graphics card, where the build
    has one; None lets llama.cpp choose.
    """

    def __init__(
        self,
        path: Path,
        *,
        vocab_only: bool = False,
        progress: Callable[[float], bool] | None = None,
        load_mtp: bool | None = None,
        head: bool = False,
        n_gpu_layers: int | None = None,
    ) -> None:
        self.path = path
        self._handle: Any = None
        self.parts = read_parts(path)  # llama.cpp aborts the process on some damaged files
        params = lib.llama_model_default_params()
        params.vocab_only = vocab_only
        if n_gpu_layers is not None:
            params.n_gpu_layers = n_gpu_layers
        params.load_mtp = held_mtp_layers(self.parts.whole) > 0 if load_mtp is None else load_mtp
        # AMX tiles crash on many virtual machines that claim to have them (llama.cpp#20824), and
        # llama.cpp uses them only through these buffers
        params.use_extra_bufts = "AMX_INT8 = 1" not in system_info()
        cancelled = False

        @lib.llama_progress_callback  # type: ignore[untyped-decorator]
        def report(fraction: float, _user_data: Any) -> bool:
            nonlocal cancelled
            cancelled = progress is not None and not progress(fraction)
            return not cancelled

        params.progress_callback = report
        _RECENT.clear()
        first = self.parts.first
        encoded = str(first).encode("utf-8") if sys.platform == "win32" else os.fsencode(first)
        handle = lib.llama_model_load_from_file(encoded, params)
        if cancelled:
            if handle:
                lib.llama_model_free(handle)
            raise LoadCancelled(str(path))
        if not handle:
            raise ModelFileError(
                f"{path.name} could not be loaded.",
                _last_complaint() or "llama.cpp gave no reason.",
                "The file may be damaged or made for a newer llama.cpp. Download it again, or "
                "choose another model.",
            )
        self._handle = handle
        self._vocab = lib.llama_model_get_vocab(handle)
        try:
            self._check_kind(vocab_only, head)
        except ModelFileError:
            self.close()
            raise
        self.n_vocab: int = lib.llama_vocab_n_tokens(self._vocab)
        self.n_ctx_train: int = lib.llama_model_n_ctx_train(handle)
        self.bos: int = lib.llama_vocab_bos(self._vocab)
        self.eos: int = lib.llama_vocab_eos(self._vocab)
        ends = (self.eos, lib.llama_vocab_eot(self._vocab))
        self.turn_ends: tuple[int, ...] = tuple(sorted({end for end in ends if end >= 0}))
        self.adds_bos: bool = bool(lib.llama_vocab_get_add_bos(self._vocab)) and self.bos >= 0
        self.n_embd: int = lib.llama_model_n_embd(handle)
        self.n_embd_out: int = lib.llama_model_n_embd_out(handle)  # of the states MTP heads read
        self.n_layer: int = lib.llama_model_n_layer(handle)  # without MTP layers
        self.n_layer_nextn: int = lib.llama_model_n_layer_nextn(handle)  # loaded or not
        self.n_swa: int = lib.llama_model_n_swa(handle)  # sliding window in tokens, 0: none
        self.loaded_mtp: bool = bool(params.load_mtp)
        self.is_hybrid: bool = bool(lib.llama_model_is_hybrid(handle))
        self.is_recurrent: bool = bool(lib.llama_model_is_recurrent(handle))

    def _check_kind(self, vocab_only: bool, head: bool) -> None:
        if lib.llama_vocab_type(self._vocab) == lib.LLAMA_VOCAB_TYPE_NONE:
            raise ModelFileError(
                f"{self.path.name} has no vocabulary.",
                "Without one, text cannot be turned into tokens.",
                "Choose a chat model.",
            )
        if vocab_only or head:
            return
        if not lib.llama_model_has_decoder(self._handle) or lib.llama_model_has_encoder(
            self._handle
        ):
            raise ModelFileError(
                f"{self.path.name} is not a chat model.",
                "It is an encoder or an encoder-decoder model, which cannot continue a chat.",
                "Choose a chat model.",
            )
        if lib.llama_model_is_diffusion(self._handle):
            raise ModelFileError(
                f"{self.path.name} is a diffusion model.",
                "It does not write one token after another, which this app relies on.",
                "Choose a chat model.",
            )

    @property
    def handle(self) -> Any:
        """The native model. Raises `EngineError` after `close()`."""
        if self._handle is None:
            raise EngineError("The model was already closed.", str(self.path))
        return self._handle

    @property
    def vocab(self) -> Any:
        """The native vocabulary. Raises `EngineError` after `close()`."""
        assert self.handle
        return self._vocab

    @property
    def attention_shape(self) -> AttentionShape:
        """Sizes of its attention."""
        heads = max(1, lib.llama_model_n_head(self.handle))
        architecture = self.metadata("general.architecture")
        given = self.metadata(f"{architecture}.attention.key_length")
        return AttentionShape(
            n_head=heads,
            n_head_kv=lib.llama_model_n_head_kv(self.handle),
            head_size=int(given) if given else self.n_embd // heads,
            n_layer=self.n_layer,
        )

    def metadata(self, key: str) -> str | None:
        """A scalar metadata value of the file as text, None where the key is absent."""
        name = key.encode()
        size = lib.llama_model_meta_val_str(self.handle, name, None, 0)
        if size < 0:
            return None
        buffer = ctypes.create_string_buffer(size + 1)
        lib.llama_model_meta_val_str(self.handle, name, buffer, size + 1)
        return buffer.value.decode("utf-8", "replace")

    def tokenize(self, text: str, *, parse_special: bool = True) -> list[int]:
        """Token ids of the text, without any BOS or EOS of the vocabulary's own.

        Lone surrogates, which no UTF-8 can hold, become U+FFFD.
        """
        data = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        size = len(data) // 2 + 16
        for _ in range(2):  # the second call knows the size the first one lacked
            buffer = (lib.llama_token * size)()
            count = lib.llama_tokenize(
                self.vocab, data, len(data), buffer, size, False, parse_special
            )
            if count >= 0:
                return list(buffer[:count])
            size = -count
        raise EngineError("The text could not be turned into tokens.", f"{len(data):,} bytes.")

    def token_text(self, token: int) -> str:
        """The token as the vocabulary spells it, e.g. "<|im_end|>"; "" for an unknown id."""
        if not 0 <= token < self.n_vocab:
            return ""
        return bytes(lib.llama_vocab_get_text(self.vocab, token)).decode("utf-8", "replace")

    def token_piece(self, token: int, *, special: bool) -> bytes:
        """The bytes the token adds to a text; control tokens are empty unless `special`."""
        size = 32
        for _ in range(2):
            buffer = ctypes.create_string_buffer(size)
            count = lib.llama_token_to_piece(self.vocab, token, buffer, size, 0, special)
            if count >= 0:
                return buffer.raw[:count]
            size = -count
        raise EngineError("A token could not be turned into text.", f"Token id {token}.")

    def is_control(self, token: int) -> bool:
        """Whether the token is a control token, such as an end of turn."""
        return bool(lib.llama_vocab_is_control(self.vocab, token))

    def is_end_of_generation(self, token: int) -> bool:
        """Whether the token ends an answer."""
        return bool(lib.llama_vocab_is_eog(self.vocab, token))

    def close(self) -> None:
        """Free the model; its contexts must be closed first. Calling it twice is harmless."""
        if self._handle is not None:
            lib.llama_model_free(self._handle)
            self._handle = None


_CACHE_TYPES = {
    CacheType.F32: lib.GGML_TYPE_F32,
    CacheType.F16: lib.GGML_TYPE_F16,
    CacheType.Q8_0: lib.GGML_TYPE_Q8_0,
    CacheType.Q4_0: lib.GGML_TYPE_Q4_0,
}


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """How a context is made. 0 lets the app choose; sizes in tokens."""

    n_ctx: int = 0
    n_batch: int = 0
    n_threads: int = 0  # for one token at a time
    n_threads_batch: int = 0  # for several at once; 0: as many as for one
    cache_type: CacheType = CacheType.F16  # of keys and values
    flash_attention: bool = True  # always where cache type, memory or a graphics card need it


class NativeBatch(Protocol):
    """What a context evaluates."""

    native: Any


class Batch:
    """A reusable batch of up to `capacity` tokens of sequence 0."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._tokens = (lib.llama_token * capacity)()
        self._positions = (lib.llama_pos * capacity)()
        self._outputs = (ctypes.c_int8 * capacity)()
        self._sequence = (lib.llama_seq_id * 1)(0)
        self._sequences = (ctypes.POINTER(lib.llama_seq_id) * capacity)(
            *[self._sequence] * capacity
        )
        self._sequence_counts = (ctypes.c_int32 * capacity)(*[1] * capacity)
        self.native = lib.llama_batch(
            n_tokens=0,
            token=self._tokens,
            embd=None,
            pos=self._positions,
            n_seq_id=self._sequence_counts,
            seq_id=self._sequences,
            logits=self._outputs,
        )

    def fill(self, tokens: Sequence[int], first_position: int, *, all_outputs: bool) -> None:
        """Hold these tokens at consecutive positions; logits for all rows or for the last only."""
        count = len(tokens)
        assert 0 < count <= self.capacity
        self.native.n_tokens = count
        if count == 1:
            self._tokens[0], self._positions[0], self._outputs[0] = tokens[0], first_position, 1
            return
        self._tokens[:count] = list(tokens)
        self._positions[:count] = list(range(first_position, first_position + count))
        self._outputs[:count] = [int(all_outputs)] * (count - 1) + [1]  # type: ignore[assignment]

    def fill_without_outputs(self, tokens: Sequence[int], first_position: int) -> None:
        """Hold these tokens at consecutive positions and ask for no logits at all."""
        self.fill(tokens, first_position, all_outputs=True)
        self._outputs[: len(tokens)] = [0] * len(tokens)


ContextState = NDArray[np.uint8]
"""A copy of what a context holds of its sequence, as llama.cpp writes it."""


class DecodeAborted(Exception):
    """A decode was stopped by the abort flag; some of the batch may be in the cache."""


class Context:
    """A llama.cpp context over one sequence: its KV cache and its logits.

    Raises `ContextSizeError` when it cannot be created, which nearly always means memory. With
    `mtp` it runs the model's MTP layers and not its others; `other` is the target's context, for
    a head that shares its weights or its memory, and must outlive this one. `n_rs_seq` is how
    many tokens a recurrent state can take back (`ROLLBACK` where it is None); `n_outputs_max` how
    many rows of logits a batch may ask for (0: all).
    """

    def __init__(
        self,
        model: Model,
        settings: ContextSettings,
        abort: AbortFlag,
        *,
        mtp: bool = False,
        other: Context | None = None,
        n_rs_seq: int | None = None,
        n_outputs_max: int = 0,
    ) -> None:
        self._handle: Any = None
        self._rows: dict[int, NDArray[np.float32]] = {}  # views of logits by their address
        self._abort = abort  # the native side keeps pointers into it
        self.model = model
        if mtp and not (model.loaded_mtp and model.n_layer_nextn):
            raise EngineError("The model was loaded without MTP layers.", str(model.path))
        params = lib.llama_context_default_params()
        params.n_ctx = settings.n_ctx or min(DEFAULT_CONTEXT, model.n_ctx_train or DEFAULT_CONTEXT)
        params.n_batch = settings.n_batch or DEFAULT_BATCH
        params.n_ubatch = min(params.n_batch, DEFAULT_BATCH)
        params.ctx_type = lib.LLAMA_CONTEXT_TYPE_MTP if mtp else lib.LLAMA_CONTEXT_TYPE_DEFAULT
        params.ctx_other = other.handle if other else None
        params.n_outputs_max = n_outputs_max
        params.type_k = params.type_v = _CACHE_TYPES[settings.cache_type]
        self._recurrent = (model.is_hybrid or model.is_recurrent) and not mtp
        self._undoable = 0  # tokens a recurrent state can take back now
        if self._recurrent:
            wanted = ROLLBACK if n_rs_seq is None else n_rs_seq
            # llama.cpp aborts the process unless n_ubatch > n_rs_seq + 1
            params.n_rs_seq = max(0, min(wanted, params.n_ubatch - 2, params.n_ctx - 2))
        self._check_memory(params.n_ctx, model.n_layer_nextn if mtp else model.n_layer)
        threads = settings.n_threads or default_threads()
        threads_batch = settings.n_threads_batch or threads
        params.n_threads = threads
        params.n_threads_batch = threads_batch
        params.abort_callback = abort.callback
        params.abort_callback_data = abort.data
        scores = model.attention_shape.score_bytes(params.n_ctx, params.n_ubatch)
        self.flash_attention: bool = (
            settings.flash_attention
            or has_graphics_card()
            or settings.cache_type in (CacheType.Q8_0, CacheType.Q4_0)
            or scores > _MOST_SCORE_BYTES
        )
        params.flash_attn_type = (
            lib.LLAMA_FLASH_ATTN_TYPE_AUTO
            if self.flash_attention
            else lib.LLAMA_FLASH_ATTN_TYPE_DISABLED
        )
        # the full window stays in a sliding-window cache, so that any prefix can be reused
        params.swa_full = True
        _RECENT.clear()
        self._handle = lib.llama_init_from_model(model.handle, params)
        if not self._handle:
            self._handle = None
            raise ContextSizeError(
                f"A context of {params.n_ctx:,} tokens could not be created for {model.path.name}.",
                _last_complaint() or "There may be too little free memory.",
                "Choose a smaller context, or close other programs.",
            )
        self._memory = lib.llama_get_memory(self._handle)
        self.n_ctx: int = lib.llama_n_ctx_seq(self._handle)
        self.n_batch: int = lib.llama_n_batch(self._handle)
        self.n_ubatch: int = lib.llama_n_ubatch(self._handle)
        self.n_rs_seq: int = lib.llama_n_rs_seq(self._handle)  # 0 where the architecture cannot
        self.n_threads: int = threads
        self.n_threads_batch: int = threads_batch

    def set_threads(self, n_threads: int, n_threads_batch: int) -> None:
        """Compute one token, and several at once, with so many threads from the next pass on."""
        lib.llama_set_n_threads(self.handle, n_threads, n_threads_batch)
        self.n_threads, self.n_threads_batch = n_threads, n_threads_batch

    def _check_memory(self, n_ctx: int, layers: int) -> None:
        """Refuse a window whose KV cache exceeds the machine: Linux would grant and then kill."""
        shape = self.model.attention_shape
        size = n_ctx * shape.head_size * shape.n_head_kv * layers * _KV_BYTES
        memory = psutil.virtual_memory().total
        if size > memory:
            raise self._too_large(
                n_ctx,
                f"Its KV cache alone would take {size / 1e9:,.0f} GB; this computer has "
                f"{memory / 1e9:,.0f} GB of memory.",
            )

    def _too_large(self, n_ctx: int, detail: str) -> ContextSizeError:
        return ContextSizeError(
            f"A context of {n_ctx:,} tokens could not be created for {self.model.path.name}.",
            detail,
            "Choose a smaller context, or close other programs.",
        )

    @property
    def handle(self) -> Any:
        """The native context. Raises `EngineError` after `close()`."""
        if self._handle is None:
            raise EngineError("The session was already closed.", str(self.model.path))
        return self._handle

    @property
    def is_open(self) -> bool:
        """Whether `close()` was not called yet."""
        return self._handle is not None

    @property
    def abort(self) -> AbortFlag:
        """The flag that stops decoding."""
        return self._abort

    @property
    def max_rollback(self) -> int | None:
        """How many of a batch's tokens, but for its first, `trim` can forget; None: any number."""
        return self.n_rs_seq if self._recurrent else None

    def decode(self, batch: NativeBatch) -> None:
        """Evaluate the batch. Raises `DecodeAborted`, or `EngineError` with llama.cpp's code."""
        self._undoable = 0
        self._check(lib.llama_decode(self.handle, batch.native), batch)
        # the states a recurrent memory keeps are those after the tokens of its latest ubatch
        self._undoable = min(self.n_rs_seq, (batch.native.n_tokens - 1) % self.n_ubatch)

    def encode(self, batch: NativeBatch) -> None:
        """Run the encoder over at most `n_ubatch` rows. Raises as `decode` does."""
        assert 0 < batch.native.n_tokens <= self.n_ubatch  # llama.cpp would abort the process
        self._check(lib.llama_encode(self.handle, batch.native), batch)

    def _check(self, code: int, batch: NativeBatch) -> None:
        if code == 0:
            return
        if code == 2:
            raise DecodeAborted
        if code == 1:
            raise ContextSizeError(
                "The context window is full.",
                f"llama.cpp found no room for {batch.native.n_tokens} tokens in a window of "
                f"{self.n_ctx:,}.",
                "Start a new chat, or choose a larger context.",
            )
        raise EngineError(
            "llama.cpp failed while it evaluated tokens.",
            f"Code {code}. {_last_complaint()}".strip(),
            "Load the model again; if it happens again, report it with the log.",
        )

    def trim(self, length: int) -> bool:
        """Forget all positions from `length` on; False (and nothing forgotten) if impossible.

        A recurrent memory can go back within its latest batch, once.
        """
        if not self.can_trim(length):
            return False
        if self._recurrent and 0 < length < self.length():
            self._undoable = 0
        return bool(lib.llama_memory_seq_rm(self._memory, 0, length, -1))

    def can_trim(self, length: int) -> bool:
        """Whether what `trim` would leave is a state to go on from.

        llama.cpp says that a recurrent memory could go back `n_rs_seq` tokens however small the
        latest batch was, and then computes with a state of some earlier time; and that a sliding
        window could go back to where `restore` has left cells out.
        """
        assert self.handle
        removed = self.length() - length
        if length <= 0 or removed <= 0:
            return True
        if self._recurrent:
            return removed <= self._undoable
        if self.model.n_swa:
            first = int(lib.llama_memory_seq_pos_min(self._memory, 0))
            return first <= max(0, length - self.model.n_swa + 1)
        return True

    def clear(self) -> None:
        """Forget everything."""
        assert self.handle
        lib.llama_memory_clear(self._memory, True)

    @property
    def needs_whole_state(self) -> bool:
        """Whether a restored state serves only what begins with all of its tokens.

        A recurrent state cannot go back, and of a sliding window only the latest cells are saved.
        """
        return self._recurrent or self.model.n_swa > 0

    def state_size(self) -> int:
        """How many bytes `save` would copy now."""
        return int(lib.llama_state_seq_get_size_ext(self.handle, 0, 0))

    def save(self) -> ContextState | None:
        """A copy of everything held; None where llama.cpp cannot or there is no memory for it."""
        size = self.state_size()
        try:
            state = np.empty(size, dtype=np.uint8)
        except MemoryError:
            return None
        pointer = state.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        written = lib.llama_state_seq_get_data_ext(self.handle, pointer, size, 0, 0)
        return state if size and written == size else None

    def restore(self, state: ContextState) -> bool:
        """Hold what `save` copied and nothing else; False, and then nothing, if that fails."""
        # an empty memory is filled from its first cell, as if the tokens were evaluated
        lib.llama_memory_clear(self._memory, False)
        self._undoable = 0
        pointer = state.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        read = lib.llama_state_seq_set_data_ext(self.handle, pointer, state.nbytes, 0, 0)
        if read != state.nbytes:
            self.clear()
            return False
        return True

    def length(self) -> int:
        """How many positions the cache holds, counted from 0."""
        assert self.handle
        return int(lib.llama_memory_seq_pos_max(self._memory, 0)) + 1

    def logits(self, row: int) -> Any:
        """Pointer to the n_vocab floats of an output row, valid until the next decode."""
        pointer = lib.llama_get_logits_ith(self.handle, row)
        if not pointer:
            raise EngineError("llama.cpp has no logits for a row.", f"Row {row}.")
        return pointer

    def row(self, row: int) -> NDArray[np.float32]:
        """The logits of an output row, shape (n_vocab,), in place: valid until the next decode."""
        pointer = self.logits(row)
        address = ctypes.cast(pointer, ctypes.c_void_p).value
        assert address is not None
        view = self._rows.get(address)
        if view is None:  # making one costs more than finding the largest logit
            if len(self._rows) > _MOST_VIEWS:
                self._rows.clear()
            view = np.ctypeslib.as_array(pointer, shape=(self.model.n_vocab,))
            self._rows[address] = view
        return view

    def close(self) -> None:
        """Free the context. Calling it twice is harmless."""
        if self._handle is not None:
            lib.llama_free(self._handle)
            self._handle = None


def default_threads() -> int:
    """Threads to decode with where nothing was measured: the physical cores that are usable."""
    return max(1, min(psutil.cpu_count(logical=False) or 1, usable_cores()))


def has_graphics_card() -> bool:
    """Whether this build of llama.cpp found one that it computes on."""
    return bool(lib.llama_supports_gpu_offload())
