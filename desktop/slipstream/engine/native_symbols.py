"""Functions of libllama that llama-cpp-python does not bind: looked up by their C++ names.

Declared in llama.cpp's src/llama-ext.h and exported, but with C++ linkage, so that their names in
the library depend on the compiler. A library without one of them still works; what needs it says
so (`available`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from slipstream.errors import EngineError

_POINTER = ctypes.c_void_p
_FLOATS = ctypes.POINTER(ctypes.c_float)
_BOOL, _UINT, _INT = ctypes.c_bool, ctypes.c_uint32, ctypes.c_int32


@dataclass(frozen=True, slots=True)
class _Signature:
    itanium: str
    msvc: str
    arguments: tuple[Any, ...]
    result: Any


_SIGNATURES = {
    "llama_set_embeddings_nextn": _Signature(
        "_Z26llama_set_embeddings_nextnP13llama_contextbb",
        "?llama_set_embeddings_nextn@@YAXPEAUllama_context@@_N1@Z",
        (_POINTER, _BOOL, _BOOL),
        None,
    ),
    "llama_set_nextn_layer_offset": _Signature(
        "_Z28llama_set_nextn_layer_offsetP13llama_contexti",
        "?llama_set_nextn_layer_offset@@YAXPEAUllama_context@@H@Z",
        (_POINTER, _INT),
        None,
    ),
    "llama_get_embeddings_nextn": _Signature(
        "_Z26llama_get_embeddings_nextnP13llama_context",
        "?llama_get_embeddings_nextn@@YAPEAMPEAUllama_context@@@Z",
        (_POINTER,),
        _FLOATS,
    ),
    "llama_get_embeddings_nextn_ith": _Signature(
        "_Z30llama_get_embeddings_nextn_ithP13llama_contexti",
        "?llama_get_embeddings_nextn_ith@@YAPEAMPEAUllama_context@@H@Z",
        (_POINTER, _INT),
        _FLOATS,
    ),
    "llama_set_embeddings_layer_inp": _Signature(
        "_Z30llama_set_embeddings_layer_inpP13llama_contextjb",
        "?llama_set_embeddings_layer_inp@@YAXPEAUllama_context@@I_N@Z",
        (_POINTER, _UINT, _BOOL),
        None,
    ),
    "llama_get_embeddings_layer_inp": _Signature(
        "_Z30llama_get_embeddings_layer_inpP13llama_contextj",
        "?llama_get_embeddings_layer_inp@@YAPEAMPEAUllama_context@@I@Z",
        (_POINTER, _UINT),
        _FLOATS,
    ),
}


class NativeSymbols:
    """Looks functions up in a loaded library when they are first asked for."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._found: dict[str, Callable[..., Any] | None] = {}

    def available(self, *names: str) -> bool:
        """Whether the library has all of these functions."""
        return all(self._look_up(name) is not None for name in names)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """The function. Raises `EngineError` where the library has none of that name."""
        function = self._look_up(name)
        if function is None:
            raise EngineError(
                "This build of llama.cpp lacks a function that drafting needs.",
                f"{name} is not in its library.",
                "Use another way of drafting, or install llama-cpp-python 0.3.36.",
            )
        return function

    def _look_up(self, name: str) -> Callable[..., Any] | None:
        if name not in self._found:
            signature = _SIGNATURES[name]
            candidates = (name, signature.itanium, signature.msvc)
            function = next(
                (f for f in (getattr(self._library, c, None) for c in candidates) if f), None
            )
            if function is not None:
                function.argtypes = list(signature.arguments)
                function.restype = signature.result
            self._found[name] = function
        return self._found[name]
