"""Files of targets and drafts with empty weights: enough to be judged, not to be loaded."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from models.raw_header import BOOL, FLOAT32, INT32, STRING, UINT32, RawHeader

Shape = tuple[int, ...]
F32, I64 = 0, 27
_BYTES = {F32: 4, I64: 8}

TOKENS = ("<unk>", "<s>", "</s>", "<a>", "<b>", *(f"word{n}" for n in range(195)))
WIDTH = 8


@dataclass
class DraftFile:
    """A file in the making. `keys` and `tensors` are the caller's to change before `write`.

    A value of None leaves the key out; a type is told from the value (int: 32 bits unsigned).
    Tensors without `data` are all zeros.
    """

    architecture: str = "llama"
    tokens: Sequence[str] = TOKENS
    tokenizer: str | None = "llama"
    keys: dict[str, object] = field(default_factory=dict)
    tensors: dict[str, Shape] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)
    data: dict[str, bytes] = field(default_factory=dict)
    version: int = 3
    big_endian: bool = False

    def write(self, path: Path) -> Path:
        """Write the file and return its path."""
        header = RawHeader(self.version, self.big_endian)
        header.entry("general.architecture", STRING, self.architecture)
        if self.tokenizer is not None:
            header.entry("tokenizer.ggml.model", STRING, self.tokenizer)
        if self.tokens:
            header.array("tokenizer.ggml.tokens", STRING, self.tokens)
        for key, value in self.keys.items():
            self._entry(header, key, value)
        data = bytearray()
        for name, shape in self.tensors.items():
            kind = self.types.get(name, F32)
            header.tensor(name, shape, kind, len(data))
            size = -(-math.prod(shape) * _BYTES.get(kind, 0) // 32) * 32
            data += self.data.get(name, b"").ljust(size, b"\0")
        whole = header.to_bytes(data=len(data))
        path.write_bytes(whole[: len(whole) - len(data)] + data)
        return path

    def _entry(self, header: RawHeader, key: str, value: object) -> None:
        name = key if "." in key else f"{self.architecture}.{key}"
        if isinstance(value, bool):
            header.entry(name, BOOL, value)
        elif isinstance(value, int):
            header.entry(name, UINT32, value)
        elif isinstance(value, float):
            header.entry(name, FLOAT32, value)
        elif isinstance(value, str):
            header.entry(name, STRING, value)
        elif isinstance(value, tuple):
            header.array(name, STRING if value and isinstance(value[0], str) else INT32, value)


def int64s(*values: int) -> bytes:
    """The values as a tensor of type I64 holds them."""
    return struct.pack(f"<{len(values)}q", *values)


def write_parts(file: DraftFile, folder: Path, *, first: int, stem: str = "m") -> list[Path]:
    """The file in two parts, the second with the tensors from number `first` on."""
    names = list(file.tensors)
    paths = []
    for number, held in enumerate((names[:first], names[first:])):
        part = replace(file, tensors={name: file.tensors[name] for name in held})
        part.keys = {"split.count": 2, "split.no": number}
        if number == 0:
            part.keys |= {**file.keys, "split.tensors.count": len(names)}
        else:
            part.tokens = ()
        paths.append(part.write(folder / f"{stem}-{number + 1:05d}-of-00002.gguf"))
    return paths


def chat_file(
    architecture: str = "llama",
    *,
    tokens: Sequence[str] = TOKENS,
    tokenizer: str = "llama",
    width: int = WIDTH,
    layers: int = 4,
    mtp_layers: int = 0,
    **keys: object,
) -> DraftFile:
    """A chat model of `layers` layers, with `mtp_layers` MTP layers behind them."""
    file = DraftFile(architecture, tokens, tokenizer)
    file.keys = {"embedding_length": width, "block_count": layers + mtp_layers, **keys}
    file.tensors = {"token_embd.weight": (width, len(tokens)), "output_norm.weight": (width,)}
    file.tensors |= {f"blk.{n}.attn_norm.weight": (width,) for n in range(layers + mtp_layers)}
    if mtp_layers:
        file.keys["nextn_predict_layers"] = mtp_layers
        for n in range(layers, layers + mtp_layers):
            file.tensors[f"blk.{n}.nextn.eh_proj.weight"] = (2 * width, width)
    return file


def mtp_file(
    architecture: str = "mimo2",
    *,
    tokens: Sequence[str] = TOKENS,
    width: int = WIDTH,
    heads: int = 1,
) -> DraftFile:
    """The MTP layers of a four-layer model, in a file of their own."""
    file = chat_file(architecture, tokens=tokens, width=width, mtp_layers=heads)
    trunk = tuple(f"blk.{n}." for n in range(4))
    file.tensors = {
        name: shape for name, shape in file.tensors.items() if not name.startswith(trunk)
    }
    return file


def eagle3_file(
    *,
    tokens: Sequence[str] = TOKENS,
    tokenizer: str = "llama",
    width: int = WIDTH,
    target_width: int = WIDTH,
    layers: tuple[int, ...] = (1, 2, 3),
    embeddings: bool = False,
    output: bool = False,
    reduced: int | None = None,
) -> DraftFile:
    """An EAGLE-3 head; with `reduced` it drafts the last so many tokens only (d2t)."""
    file = DraftFile("eagle3", tokens, tokenizer)
    file.keys = {
        "embedding_length": width,
        "target_hidden_size": target_width,
        "block_count": 1,
        "target_layers": layers,
    }
    file.tensors = {"fc.weight": (3 * target_width, width), "output_norm.weight": (width,)}
    for name in ("attn_norm", "attn_norm_2", "ffn_norm"):
        file.tensors[f"blk.0.{name}.weight"] = (width,)
    for name in ("attn_q", "attn_k", "attn_v"):
        file.tensors[f"blk.0.{name}.weight"] = (2 * width, width)
    for name in ("attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        file.tensors[f"blk.0.{name}.weight"] = (width, width)
    if embeddings:
        file.tensors["token_embd.weight"] = (width, len(tokens))
    if output:
        file.tensors["output.weight"] = (width, reduced or len(tokens))
    if reduced is not None:
        file.tensors["d2t"] = (reduced,)
        file.types["d2t"] = I64
        file.data["d2t"] = int64s(*range(len(tokens) - reduced, len(tokens)))
    return file
