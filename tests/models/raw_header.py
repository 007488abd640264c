"""GGUF headers byte by byte, for versions, byte orders and faults that no writer produces."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = range(10)
UINT64, INT64, FLOAT64 = range(10, 13)

_CODES = {
    UINT8: "B",
    INT8: "b",
    UINT16: "H",
    INT16: "h",
    UINT32: "I",
    INT32: "i",
    FLOAT32: "f",
    BOOL: "?",
    UINT64: "Q",
    INT64: "q",
    FLOAT64: "d",
}


@dataclass
class RawHeader:
    """A header in the making; `entry` and `tensor` append, `to_bytes` puts it together.

    `entry_count` and `tensor_count` lie where they are set.
    """

    version: int = 3
    big_endian: bool = False
    entry_count: int | None = None
    tensor_count: int | None = None
    entries: list[bytes] = field(default_factory=list)
    tensors: list[bytes] = field(default_factory=list)

    def pack(self, code: str, *values: object) -> bytes:
        return struct.pack((">" if self.big_endian else "<") + code, *values)

    def length(self, value: int) -> bytes:
        return self.pack("I" if self.version == 1 else "Q", value)

    def string(self, text: str | bytes) -> bytes:
        raw = text.encode() if isinstance(text, str) else text
        return self.length(len(raw)) + raw

    def value(self, kind: int, value: object) -> bytes:
        if kind == STRING:
            assert isinstance(value, str | bytes)
            return self.string(value)
        return self.pack(_CODES[kind], value)

    def entry(self, key: str | bytes, kind: int, value: object) -> RawHeader:
        """Append a single value."""
        self.entries.append(self.string(key) + self.pack("I", kind) + self.value(kind, value))
        return self

    def array(self, key: str | bytes, kind: int, values: Sequence[object]) -> RawHeader:
        """Append a flat array."""
        body = b"".join(self.value(kind, value) for value in values)
        return self.raw_array(key, kind, len(values), body)

    def raw_array(self, key: str | bytes, kind: int, length: int, body: bytes) -> RawHeader:
        """Append an array whose claimed `length` and bytes are the caller's."""
        head = self.string(key) + self.pack("I", ARRAY) + self.pack("I", kind)
        self.entries.append(head + self.length(length) + body)
        return self

    def tensor(
        self, name: str | bytes, dimensions: Sequence[int], kind: int = 0, offset: int = 0
    ) -> RawHeader:
        """Append the description of a tensor."""
        sizes = b"".join(self.length(dimension) for dimension in dimensions)
        count = self.pack("I", len(dimensions))
        self.tensors.append(
            self.string(name) + count + sizes + self.pack("I", kind) + self.pack("Q", offset)
        )
        return self

    def to_bytes(self, *, data: int = 0, alignment: int = 32) -> bytes:
        """The header, padded to `alignment` and followed by `data` zero bytes if there is data."""
        tensors = len(self.tensors) if self.tensor_count is None else self.tensor_count
        entries = len(self.entries) if self.entry_count is None else self.entry_count
        head = b"GGUF" + self.pack("I", self.version) + self.length(tensors) + self.length(entries)
        whole = head + b"".join(self.entries) + b"".join(self.tensors)
        return whole + bytes(-len(whole) % alignment + data) if data else whole


def small_header(*, version: int = 3, big_endian: bool = False) -> RawHeader:
    """A header with every type of value, two tensors and a data section of 224 bytes to follow."""
    header = RawHeader(version, big_endian)
    header.entry("general.architecture", STRING, "llama")
    header.entry("general.name", STRING, "Süß 模型 😀")
    for kind, value in (
        (UINT8, 200),
        (INT8, -100),
        (UINT16, 60_000),
        (INT16, -30_000),
        (UINT32, 4_000_000_000),
        (INT32, -2_000_000_000),
        (FLOAT32, 0.5),
        (BOOL, True),
        (UINT64, 2**63 + 1),
        (INT64, -(2**62)),
        (FLOAT64, 1e300),
    ):
        header.entry(f"test.scalar.{kind}", kind, value)
    header.array("test.numbers", INT32, [2, 15, 27])
    header.array("test.texts", STRING, ["a", "", "ü"])
    header.array("test.empty", UINT32, [])
    inner = header.pack("I", UINT8) + header.length(2) + b"\x01\x02"
    header.raw_array("test.nested", ARRAY, 2, inner * 2)
    header.tensor("first.weight", (8, 4), 0, 0)
    header.tensor("second.weight", (32, 3), 8, 128)
    return header


SMALL_DATA_BYTES = 128 + 3 * 34


def build_large_header(
    path: Path, *, tokens: int = 262_144, merges: int = 514_000, name: str = "Large vocabulary"
) -> Path:
    """A vocabulary without a model, as large as the largest in use; returns `path`."""
    header = RawHeader()
    header.entry("general.architecture", STRING, "llama")
    header.entry("general.name", STRING, name)
    header.entry("tokenizer.ggml.model", STRING, "gpt2")
    header.array("tokenizer.ggml.tokens", STRING, [f"token{n % 97}_{n}" for n in range(tokens)])
    header.raw_array("tokenizer.ggml.scores", FLOAT32, tokens, bytes(4 * tokens))
    header.raw_array("tokenizer.ggml.token_type", INT32, tokens, bytes(4 * tokens))
    header.array("tokenizer.ggml.merges", STRING, [f"mer{n % 31} ge{n}" for n in range(merges)])
    header.entry("llama.context_length", UINT32, 131_072)
    path.write_bytes(header.to_bytes())
    return path
