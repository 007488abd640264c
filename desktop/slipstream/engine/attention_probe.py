"""Measures attention on this processor, with ggml's flash attention and without.

Which of the two is faster depends on the processor and not on the model's weights: one token at
1,000 tokens of context took twice as long with flash attention on a Xeon and 5 % less on an EPYC.
A model would have to read a long prompt to show it, so the attention of all layers is built here
from empty tensors, as llama.cpp's `build_attn_mha` (src/llama-graph.cpp) does.
"""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from typing import Any

from slipstream.engine.attention_shape import AttentionShape
from slipstream.engine.llama import lib
from slipstream.engine.processor_share import ProcessorShare

CONTEXT = 1024
"""Tokens of context the attention is measured at."""

_REPEATS = 15
_SECONDS = 0.15  # at most, but for the first ones
_FEWEST = 4
_MOST_BYTES = 1 << 28  # of keys and values; more layers than fit are extrapolated
_F32, _F16 = 0, 1  # ggml_type
_PRECISE = 10  # GGML_PREC_F32

_Pointer, _Size, _Int64, _Float = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, ctypes.c_float,
)  # fmt: skip


class _InitParams(ctypes.Structure):
    """`ggml_init_params`."""

    _fields_ = (("mem_size", _Size), ("mem_buffer", _Pointer), ("no_alloc", ctypes.c_bool))


_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "ggml_init": (_Pointer, _InitParams),
    "ggml_free": (None, _Pointer),
    "ggml_new_tensor_4d": (_Pointer, _Pointer, ctypes.c_int, *[_Int64] * 4),
    "ggml_set_zero": (_Pointer, _Pointer),
    "ggml_mul_mat": (_Pointer, *[_Pointer] * 3),
    "ggml_mul_mat_set_prec": (None, _Pointer, ctypes.c_int),
    "ggml_soft_max_ext": (_Pointer, *[_Pointer] * 3, _Float, _Float),
    "ggml_flash_attn_ext": (_Pointer, *[_Pointer] * 5, *[_Float] * 3),
    "ggml_new_graph": (_Pointer, _Pointer),
    "ggml_build_forward_expand": (None, _Pointer, _Pointer),
    "ggml_graph_compute_with_ctx": (ctypes.c_int, _Pointer, _Pointer, ctypes.c_int),
}


@dataclass(frozen=True, slots=True)
class AttentionSeconds:
    """What all layers' attention takes for one token at `CONTEXT` tokens of context."""

    flash: float
    plain: float


def measure_attention(shape: AttentionShape, n_threads: int) -> AttentionSeconds | None:
    """Measure both kinds in turn, in some hundredths of a second for a small model.

    None where the shape is not one of ordinary attention, where ggml's functions cannot be
    reached through libllama, as on Windows, and where other programs needed the processor.
    """
    usable = shape.n_head_kv > 0 and shape.n_head % shape.n_head_kv == 0 and shape.head_size > 0
    if not usable or shape.n_layer < 1:
        return None
    try:
        ggml = _Ggml()
    except AttributeError:
        return None
    layer = 2 * 2 * CONTEXT * shape.head_size * shape.n_head_kv
    layers = max(1, min(shape.n_layer, _MOST_BYTES // layer))
    graphs = {flash: _Graph(ggml, shape, layers, n_threads, flash) for flash in (True, False)}
    try:
        for graph in graphs.values():
            graph.compute()  # the first one touches the memory
        seconds = {True: float("inf"), False: float("inf")}
        share = ProcessorShare()
        started = time.perf_counter()
        for turn in range(_REPEATS):
            if turn >= _FEWEST and time.perf_counter() - started > _SECONDS:
                break
            for flash, graph in graphs.items():
                begun = time.perf_counter()
                with share.of(n_threads):
                    graph.compute()
                seconds[flash] = min(seconds[flash], time.perf_counter() - begun)
    finally:
        for graph in graphs.values():
            graph.close()
    if not share.undisturbed:
        return None
    scale = shape.n_layer / layers
    return AttentionSeconds(flash=scale * seconds[True], plain=scale * seconds[False])


class _Ggml:
    """The functions of ggml that are needed; `AttributeError` where one is missing."""

    def __init__(self) -> None:
        for name, (result, *arguments) in _SIGNATURES.items():
            function = getattr(lib._lib, name)
            function.restype = result
            function.argtypes = arguments
            setattr(self, name.removeprefix("ggml_"), function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class _Graph:
    """The attention of some layers over one token, in a ggml context of its own."""

    def __init__(
        self, ggml: _Ggml, shape: AttentionShape, layers: int, n_threads: int, flash: bool
    ) -> None:
        self._ggml = ggml
        self._n_threads = n_threads
        heads, size = shape.n_head, shape.head_size
        cache = 2 * 2 * CONTEXT * size * shape.n_head_kv
        rest = 4 * heads * (3 * CONTEXT + 3 * size) + 4 * CONTEXT
        # each computation takes a buffer of its own from the context: `ggml_graph_plan` in ggml's
        # ggml-cpu.c, twice as much as flash attention and the products ask for
        work = 2 * n_threads * 4 * (64 * 4 * size + 8192) + 4 * heads * (CONTEXT + size) + (1 << 20)
        memory = layers * (cache + rest + (1 << 14)) + (1 << 20) + (_REPEATS + 1) * work
        self._context = ggml.init(_InitParams(memory, None, False))
        self._graph = ggml.new_graph(self._context)
        scale = size**-0.5
        for _ in range(layers):
            query = self._empty(_F32, size, 1, heads)
            mask = self._empty(_F16 if flash else _F32, CONTEXT, 1, 1)
            keys = self._empty(_F16, size, CONTEXT, shape.n_head_kv)
            if flash:
                values = self._empty(_F16, size, CONTEXT, shape.n_head_kv)
                result = ggml.flash_attn_ext(
                    self._context, query, keys, values, mask, scale, 0.0, 0.0
                )
            else:
                values = self._empty(_F16, CONTEXT, size, shape.n_head_kv)
                scores = ggml.mul_mat(self._context, keys, query)
                ggml.mul_mat_set_prec(scores, _PRECISE)
                scores = ggml.soft_max_ext(self._context, scores, mask, scale, 0.0)
                result = ggml.mul_mat(self._context, values, scores)
            ggml.build_forward_expand(self._graph, result)

    def _empty(self, kind: int, *sizes: int) -> Any:
        tensor = self._ggml.new_tensor_4d(self._context, kind, *sizes, 1)
        return self._ggml.set_zero(tensor)

    def compute(self) -> None:
        self._ggml.graph_compute_with_ctx(self._context, self._graph, self._n_threads)

    def close(self) -> None:
        self._ggml.free(self._context)
