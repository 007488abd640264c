"""Other quantisations of a model file, by llama.cpp's own quantise function."""

from __future__ import annotations

import ctypes
from pathlib import Path

from slipstream.engine.llama import lib


def quantised(source: Path, folder: Path, name: str, file_type: int) -> Path:
    """The model as `file_type` (a `LLAMA_FTYPE_…` of llama.h), in a new file in `folder`."""
    path = folder / f"{source.stem}-{name}.gguf"
    params = lib.llama_model_quantize_default_params()
    params.ftype = file_type
    params.allow_requantize = True
    params.nthread = 2
    code = lib.llama_model_quantize(str(source).encode(), str(path).encode(), ctypes.byref(params))
    assert code == 0
    return path
