"""Reads and checks the header of a GGUF file in milliseconds, without loading a tensor.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; the rules are those of
llama.cpp's own reader (ggml/src/gguf.cpp), so that what passes here does not abort there. Nothing a
file claims is believed before it is compared with the file's real size. Knows nothing of models;
that is `library.model_file`.
"""

from __future__ import annotations

import io
import os
import stat
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import BinaryIO, cast

from slipstream.engine.foreign_files import foreign_format
from slipstream.engine.ggml_types import GGML_TYPES, ggml_type_name
from slipstream.engine.gguf_errors import FileFault, FilePath, GgufError, file_name, printable
from slipstream.engine.gguf_stream import DOWNLOAD_AGAIN, NEWEST_VERSION, HeaderStream
from slipstream.engine.gguf_values import (
    NUMBER_CODES,
    ArrayInfo,
    ByteOrder,
    Scalar,
    Value,
    ValueType,
)

__all__ = [
    "ArrayInfo",
    "ByteOrder",
    "FileFault",
    "GgufError",
    "Header",
    "Scalar",
    "TensorInfo",
    "Value",
    "ValueType",
    "file_name",
    "parse_header",
    "printable",
    "read_array",
    "read_header",
    "read_int64_tensor",
    "read_strings",
]

MAX_ENTRIES = 2**16
MAX_TENSORS = 2**17
LONG_TEXT_BYTES = 4 * 2**20
"""A longer single text is recorded as an array of bytes and not decoded."""

SMALL_NUMBER_ARRAY = 1024
SMALL_STRING_ARRAY = 64
SMALL_STRING_ARRAY_BYTES = 2**16
MAX_DECODED_ELEMENTS = 2**18
"""Elements of small arrays decoded for one header; further arrays are recorded as skipped."""

MAX_NESTING = 4
MAX_NESTED_LISTS = 2**16
MAX_KEY_BYTES = 2**16 - 1
MAX_TENSOR_NAME_BYTES = 63
MAX_DIMENSIONS = 4
MAX_ELEMENTS = 2**63 - 1
MAX_FILE_BYTES = 2**46
"""Tensor data that ends beyond this (64 TiB) is damage, not an unfinished download."""

DEFAULT_ALIGNMENT = 32
PLAUSIBLE_VERSION = 99


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor: `dimensions` in ggml's order (row length first), `offset` from the data's start.

    `type` is ggml's number; `size_bytes` is None where this version does not know the type.
    """

    name: str
    dimensions: tuple[int, ...]
    type: int
    offset: int
    size_bytes: int | None

    @property
    def type_name(self) -> str:
        """Like "Q4_K"; "type 77" for a type this version does not know."""
        return ggml_type_name(self.type)

    @property
    def elements(self) -> int:
        """The number of weights."""
        product = 1
        for dimension in self.dimensions:
            product *= dimension
        return product


@dataclass(frozen=True, slots=True)
class Header:
    """Everything before the tensor data.

    `metadata` keeps the file's order; texts that are not UTF-8 have U+FFFD in their place, long
    arrays are `ArrayInfo` (see `read_array`). `data_offset` is the byte where tensor data starts.
    """

    version: int
    byte_order: ByteOrder
    metadata: Mapping[str, Value]
    tensors: tuple[TensorInfo, ...]
    data_offset: int
    alignment: int
    file_size: int

    @property
    def architecture(self) -> str:
        """`general.architecture`, or "" where there is none."""
        return self.text("general.architecture") or ""

    def text(self, key: str) -> str | None:
        """The string under `key`; None where it is absent or something else."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None

    def integer(self, key: str) -> int | None:
        """The whole number under `key`; None where it is absent or something else."""
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def flag(self, key: str) -> bool | None:
        """The boolean under `key`; None where it is absent or something else."""
        value = self.metadata.get(key)
        return value if isinstance(value, bool) else None

    def array_length(self, key: str) -> int | None:
        """The number of elements of the array under `key`; None where there is no array."""
        value = self.metadata.get(key)
        if isinstance(value, ArrayInfo):
            return value.length
        return len(value) if isinstance(value, tuple) else None


def read_header(path: FilePath) -> Header:
    """Read the header of the GGUF file at `path`.

    Raises GgufError, and nothing else, for whatever is wrong with the file or the path.
    """
    with _open(path) as file:
        return parse_header(file, path, os.fstat(file.fileno()).st_size)


def parse_header(file: BinaryIO, path: FilePath, file_size: int) -> Header:
    """`read_header` for a stream at its start that holds (or claims to hold) `file_size` bytes."""
    try:
        return _HeaderParser(HeaderStream(file, path, file_size)).parse()
    except OSError as error:
        raise _unreadable(path, error) from error


def read_array(path: FilePath, key: str) -> tuple[Scalar, ...]:
    """All elements of the array under `key`, however long; strings lossless (surrogate escapes).

    Raises GgufError for a bad file and KeyError where the file has no such flat array.
    """
    with _open(path) as file:
        size = os.fstat(file.fileno()).st_size
        header = parse_header(file, path, size)
        value = header.metadata[key]
        if isinstance(value, tuple):
            return value
        if not isinstance(value, ArrayInfo) or value.type is ValueType.ARRAY:
            raise KeyError(key)
        try:
            reader = HeaderStream(file, path, size)
            reader.use(header.byte_order, header.version)
            reader.jump(value.offset)
            if value.type is ValueType.STRING:
                return reader.strings(value.length, errors="surrogateescape")
            return reader.numbers(value.type, value.length)
        except OSError as error:
            raise _unreadable(path, error) from error


def read_strings(path: FilePath, key: str) -> tuple[str, ...]:
    """`read_array` for an array of strings (a token list); KeyError where it holds numbers."""
    values = read_array(path, key)
    if values and not isinstance(values[0], str):
        raise KeyError(key)
    return cast("tuple[str, ...]", values)


def read_int64_tensor(path: FilePath, header: Header, tensor: TensorInfo) -> tuple[int, ...]:
    """All elements of a tensor of type I64, which `header`, of the file at `path`, describes.

    Raises GgufError for a file that cannot be read or no longer holds the tensor, and ValueError
    for a tensor of another type.
    """
    if tensor.type_name != "I64":
        raise ValueError(tensor.type_name)
    start, count = header.data_offset + tensor.offset, tensor.elements
    layout = struct.Struct(f"{'<' if header.byte_order is ByteOrder.LITTLE else '>'}{count}q")
    with _open(path) as file, io.BufferedReader(file) as reader:
        try:
            reader.seek(start)
            data = reader.read(layout.size)
        except OSError as error:
            raise _unreadable(path, error) from error
        if len(data) < layout.size:
            size = os.fstat(file.fileno()).st_size
            HeaderStream(file, path, size).truncated(start + layout.size)
    return layout.unpack(data)


def _open(path: FilePath) -> io.FileIO:
    name = file_name(path)
    try:
        status = os.stat(path)
        if stat.S_ISREG(status.st_mode):
            # Not blocking: between the two calls the path may have become a pipe.
            flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
            descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
            file = io.FileIO(descriptor, "rb")
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return file
            file.close()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise GgufError(
            FileFault.MISSING,
            path,
            f"“{name}” is not there.",
            f"There is no file at {printable(os.fspath(path))}.",
            "It may have been moved, renamed or deleted, or its disk is not connected.",
        ) from error
    except ValueError as error:
        raise GgufError(
            FileFault.MISSING,
            path,
            f"“{name}” cannot be the name of a file.",
            "The path has a character that no file name can have.",
            "Choose another file.",
        ) from error
    except OSError as error:
        raise _unreadable(path, error) from error
    what = "a folder" if stat.S_ISDIR(status.st_mode) else "a device or a pipe"
    raise GgufError(
        FileFault.NOT_A_FILE,
        path,
        f"“{name}” is {what}, not a file.",
        f"The path is {printable(os.fspath(path))}.",
        "Choose a .gguf file.",
    )


def _unreadable(path: FilePath, error: OSError) -> GgufError:
    denied = isinstance(error, PermissionError)
    return GgufError(
        FileFault.UNREADABLE,
        path,
        f"“{file_name(path)}” cannot be read.",
        f"The system says: {printable(error.strerror or str(error) or 'input/output error')}.",
        "Allow reading it, or copy it to a folder of yours."
        if denied
        else "Check the disk or the network drive it is on, then try again.",
    )


class _HeaderParser:
    """One pass from the magic to the last tensor's description."""

    def __init__(self, reader: HeaderStream) -> None:
        self._reader = reader
        self._metadata: dict[str, Value] = {}
        self._types: dict[str, int] = {}
        self._elements_left = MAX_DECODED_ELEMENTS
        self._lists_left = MAX_NESTED_LISTS

    def parse(self) -> Header:
        reader = self._reader
        self._check_magic()
        version, order = self._read_version()
        reader.use(order, version)
        tensor_count, entry_count = self._read_counts()
        for index in range(entry_count):
            self._read_entry(index)
        alignment = self._alignment()
        raw = [self._read_tensor(index) for index in range(tensor_count)]
        data_offset = reader.position
        if raw:
            data_offset = -(-data_offset // alignment) * alignment
        tensors = self._place(raw, alignment, data_offset)
        return Header(
            version,
            order,
            MappingProxyType(self._metadata),
            tensors,
            data_offset,
            alignment,
            reader.size,
        )

    def _check_magic(self) -> None:
        reader = self._reader
        name = file_name(reader.path)
        if reader.size == 0:
            raise GgufError(
                FileFault.EMPTY,
                reader.path,
                f"“{name}” is empty.",
                "The file has 0 bytes.",
                DOWNLOAD_AGAIN,
                found=0,
            )
        start = reader.take(min(reader.size, 4096))
        if start[:4] == b"GGUF":
            reader.jump(4)
            return
        if b"GGUF".startswith(start):
            reader.truncated(24, at_least=True)
        foreign = foreign_format(start)
        raise GgufError(
            FileFault.NOT_GGUF,
            reader.path,
            f"“{name}” is not a GGUF model.",
            foreign.sentence,
            foreign.hint,
            found=reader.size,
        )

    def _read_version(self) -> tuple[int, ByteOrder]:
        reader = self._reader
        raw = reader.take(4)
        version, order = int.from_bytes(raw, "little"), ByteOrder.LITTLE
        if version & 0xFFFF == 0 and version:
            version, order = int.from_bytes(raw, "big"), ByteOrder.BIG
        if not 1 <= version <= PLAUSIBLE_VERSION:
            reader.damaged(f"It claims to be GGUF version {version:,}, which does not exist.")
        if version > NEWEST_VERSION:
            raise GgufError(
                FileFault.UNSUPPORTED_VERSION,
                reader.path,
                f"“{file_name(reader.path)}” is a newer kind of GGUF file.",
                f"It has version {version}; this version of Slipstream reads 1 to "
                f"{NEWEST_VERSION}.",
                "Update Slipstream, or look for an older conversion of the model.",
            )
        return version, order

    def _read_counts(self) -> tuple[int, int]:
        reader = self._reader
        tensors, entries = reader.length(), reader.length()
        if tensors > MAX_TENSORS:
            reader.damaged(f"It claims {tensors:,} tensors; at most {MAX_TENSORS:,} are possible.")
        if entries > MAX_ENTRIES:
            reader.damaged(
                f"It claims {entries:,} metadata entries; at most {MAX_ENTRIES:,} are possible."
            )
        shortest_entry = reader.length_bytes + 1 + 4 + 1
        shortest_tensor = reader.length_bytes + 4 + 4 + 8
        reader.check_end(reader.position + entries * shortest_entry + tensors * shortest_tensor)
        return tensors, entries

    def _read_entry(self, index: int) -> None:
        reader = self._reader
        length = reader.length()
        if length > MAX_KEY_BYTES:
            reader.damaged(f"The name of metadata entry {index + 1} has {length:,} bytes.")
        try:
            key = reader.text_bytes(length).decode("utf-8")
        except UnicodeDecodeError:
            reader.damaged(f"The name of metadata entry {index + 1} is not valid text.")
        if not key:
            reader.damaged(f"Metadata entry {index + 1} has no name.")
        if key in self._metadata:
            reader.damaged(f"Two metadata entries have the same name, “{printable(key)}”.")
        kind = reader.uint32()
        self._types[key] = kind
        self._metadata[key] = self._read_value(key, kind)

    def _read_value(self, key: str, kind: int) -> Value:
        reader = self._reader
        if kind in NUMBER_CODES:
            return reader.number(kind)
        if kind == ValueType.STRING:
            length = reader.length()
            if length > LONG_TEXT_BYTES:
                start = reader.position
                reader.skip(length)
                return ArrayInfo(ValueType.UINT8, length, start)
            return reader.text_bytes(length).decode("utf-8", "replace")
        if kind != ValueType.ARRAY:
            reader.damaged(f"The value of “{printable(key)}” has the unknown type {kind}.")
        return self._read_array(key)

    def _read_array(self, key: str) -> Value:
        reader = self._reader
        kind, length = self._read_array_head(key)
        start = reader.position
        self._skip_array(key, kind, length, 1)
        end = reader.position
        if self._is_small(kind, length, end - start):
            self._elements_left -= length
            reader.jump(start)
            if kind is ValueType.STRING:
                return reader.strings(length, errors="replace")
            return reader.numbers(kind, length)
        return ArrayInfo(kind, length, start)

    def _is_small(self, kind: ValueType, length: int, size_bytes: int) -> bool:
        if kind is ValueType.ARRAY or length > self._elements_left:
            return False
        if kind is ValueType.STRING:
            return length <= SMALL_STRING_ARRAY and size_bytes <= SMALL_STRING_ARRAY_BYTES
        return length <= SMALL_NUMBER_ARRAY

    def _read_array_head(self, key: str) -> tuple[ValueType, int]:
        reader = self._reader
        kind, length = reader.uint32(), reader.length()
        if kind > ValueType.FLOAT64:
            reader.damaged(f"The list “{printable(key)}” holds values of the unknown type {kind}.")
        return ValueType(kind), length

    def _skip_array(self, key: str, kind: ValueType, length: int, depth: int) -> None:
        reader = self._reader
        if kind in NUMBER_CODES:
            reader.skip_numbers(kind, length)
            return
        if kind is ValueType.STRING:
            reader.skip_strings(length)
            return
        if depth >= MAX_NESTING:
            reader.damaged(f"“{printable(key)}” nests lists more than {MAX_NESTING} deep.")
        if length > self._lists_left:
            reader.damaged(f"“{printable(key)}” holds {length:,} lists, more than any model has.")
        self._lists_left -= length
        reader.check_end(reader.position + length * (4 + reader.length_bytes))
        for _ in range(length):
            inner, inner_length = self._read_array_head(key)
            self._skip_array(key, inner, inner_length, depth + 1)

    def _alignment(self) -> int:
        key = "general.alignment"
        if key not in self._metadata:
            return DEFAULT_ALIGNMENT
        value = self._metadata[key]
        if self._types[key] != ValueType.UINT32 or not isinstance(value, int):
            self._reader.damaged("The alignment of its data is not a 32-bit whole number.")
        if value <= 0 or value & (value - 1):
            self._reader.damaged(
                f"The alignment of its data is {value:,}, which is not a power of two."
            )
        return value

    def _read_tensor(self, index: int) -> TensorInfo:
        reader = self._reader
        length = reader.length()
        if length > MAX_TENSOR_NAME_BYTES:
            reader.damaged(f"The name of tensor {index + 1} has {length:,} bytes.")
        raw_name = reader.text_bytes(length)
        try:
            name = raw_name.decode("utf-8")
        except UnicodeDecodeError:
            reader.damaged(f"The name of tensor {index + 1} is not valid text.")
        count = reader.uint32()
        if count > MAX_DIMENSIONS:
            reader.damaged(f"Tensor “{printable(name)}” has {count:,} dimensions.")
        dimensions = tuple(reader.length() for _ in range(count))
        kind = reader.uint32()
        offset = reader.uint64()
        size_bytes = self._tensor_bytes(name, dimensions, kind)
        return TensorInfo(name, dimensions, kind, offset, size_bytes)

    def _tensor_bytes(self, name: str, dimensions: tuple[int, ...], kind: int) -> int | None:
        shown = f"Tensor “{printable(name)}”"
        elements = 1
        for dimension in dimensions:
            elements *= dimension  # a zero after an overflow does not excuse it
            if dimension > MAX_ELEMENTS or elements > MAX_ELEMENTS:
                self._reader.damaged(f"{shown} claims more elements than a file can hold.")
        known = GGML_TYPES.get(kind)
        if known is None:
            return None
        row = dimensions[0] if dimensions else 1
        if row % known.block_elements:
            self._reader.damaged(
                f"{shown} has rows of {row:,} elements; type {known.name} needs a multiple "
                f"of {known.block_elements}."
            )
        return elements // known.block_elements * known.block_bytes

    def _place(
        self, tensors: list[TensorInfo], alignment: int, data_offset: int
    ) -> tuple[TensorInfo, ...]:
        """Check that the tensors follow each other without a gap and end within the file."""
        reader = self._reader
        names: set[str] = set()
        next_offset: int | None = 0
        end = data_offset
        for tensor in tensors:
            shown = f"Tensor “{printable(tensor.name)}”"
            if tensor.name in names:
                reader.damaged(f"Two tensors have the same name, “{printable(tensor.name)}”.")
            names.add(tensor.name)
            if tensor.offset % alignment:
                reader.damaged(
                    f"{shown} starts at {tensor.offset:,}, which is not a multiple of {alignment}."
                )
            if next_offset is not None and tensor.offset != next_offset:
                reader.damaged(
                    f"{shown} starts at {tensor.offset:,}; the tensor before it ends at "
                    f"{next_offset:,}."
                )
            size = tensor.size_bytes
            end = max(end, data_offset + tensor.offset + (size or 0))
            if end > MAX_FILE_BYTES:
                reader.damaged(f"{shown} claims to end at byte {end:,}, beyond any disk.")
            # Behind a tensor of unknown size only the alignment can be checked.
            if size is None or next_offset is None:
                next_offset = None
            else:
                next_offset = -(-(tensor.offset + size) // alignment) * alignment
        if tensors and end > reader.size:
            reader.truncated(end)
        return tuple(tensors)
