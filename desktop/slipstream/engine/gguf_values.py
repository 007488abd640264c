"""The kinds of values a GGUF header holds.

Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class ByteOrder(StrEnum):
    """How the file's numbers are stored; llama.cpp loads the machine's own order only."""

    LITTLE = "little"
    BIG = "big"


class ValueType(IntEnum):
    """The types of metadata values, as numbered in the file."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


NUMBER_CODES: dict[int, str] = {
    ValueType.UINT8: "B",
    ValueType.INT8: "b",
    ValueType.UINT16: "H",
    ValueType.INT16: "h",
    ValueType.UINT32: "I",
    ValueType.INT32: "i",
    ValueType.FLOAT32: "f",
    ValueType.BOOL: "?",
    ValueType.UINT64: "Q",
    ValueType.INT64: "q",
    ValueType.FLOAT64: "d",
}


@dataclass(frozen=True, slots=True)
class ArrayInfo:
    """An array that was skipped: `length` elements of `type`, the first at byte `offset`."""

    type: ValueType
    length: int
    offset: int


Scalar = int | float | bool | str
Value = Scalar | tuple[Scalar, ...] | ArrayInfo
