"""The files of a model: which they are, whether they belong together and could be loaded.

Large models are published in parts by llama.cpp's naming rule (`llama_split_path`). Loads nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from slipstream.engine.ggml_types import GGML_TYPES
from slipstream.engine.gguf import (
    ByteOrder,
    FileFault,
    GgufError,
    Header,
    file_name,
    read_header,
    read_int64_tensor,
)

_PART_NAME = re.compile(r"(?P<prefix>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)
_NAME_HINT = "Keep all parts in one folder under their original names (…-00001-of-00003.gguf)."


@dataclass(frozen=True, slots=True)
class ModelParts:
    """All files of one model, in order, with their headers; one of each for a plain file.

    `whole` is one header for all of them: the first part's metadata, and every part's tensors,
    whose offsets count from the data of their own part.
    """

    paths: tuple[Path, ...]
    headers: tuple[Header, ...]
    whole: Header

    @property
    def first(self) -> Path:
        """The file to load: llama.cpp finds the others from it."""
        return self.paths[0]


def split_stem(stem: str) -> str:
    """A file's stem without the "-00001-of-00003" that names a part."""
    match = _PART_NAME.fullmatch(stem + ".gguf")
    return match["prefix"] if match else stem


def read_parts(path: Path) -> ModelParts:
    """Read the header of `path` and, where it is one part of several, of all the others.

    Raises GgufError: for a fault in any part, MISSING_PART naming the parts that are not there,
    MIXED_PARTS where a part is of another model or in the wrong place.
    """
    header = read_header(path)
    count = header.integer("split.count") or 1
    if count <= 1:
        return ModelParts((path,), (header,), header)
    paths = _part_paths(path, header, count)
    missing = [part for part in paths if not part.exists()]
    if missing:
        named = ", ".join(f"“{file_name(part)}”" for part in missing[:3])
        more = f" and {len(missing) - 3:,} more" if len(missing) > 3 else ""
        raise GgufError(
            FileFault.MISSING_PART,
            path,
            f"“{file_name(path)}” is one of {count:,} parts, and not all are there.",
            f"Missing: {named}{more}.",
            "Download the missing parts into the same folder.",
        )
    headers = tuple(header if part == path else read_header(part) for part in paths)
    _check_together(paths, headers)
    whole = replace(
        headers[0],
        tensors=tuple(tensor for part in headers for tensor in part.tensors),
        file_size=sum(part.file_size for part in headers),
    )
    return ModelParts(paths, headers, whole)


def load_obstacle(parts: ModelParts) -> str | None:
    """Why llama.cpp cannot load the model, in words that follow "it"; None where it may."""
    if any(header.version == 1 for header in parts.headers):
        return "is a GGUF file of version 1, which llama.cpp no longer loads"
    if any(header.byte_order is ByteOrder.BIG for header in parts.headers):
        return "is a big-endian file, made for machines that order bytes the other way round"
    unknown = next((one for one in parts.whole.tensors if one.type not in GGML_TYPES), None)
    if unknown is not None:
        return f"stores weights as {unknown.type_name}, which this version cannot load"
    return None


def read_int64s(parts: ModelParts, name: str) -> tuple[int, ...]:
    """All elements of the I64 tensor `name`, in whichever part it lies.

    Raises GgufError for a file that cannot be read, and KeyError where there is no such tensor.
    """
    for path, header in zip(parts.paths, parts.headers, strict=True):
        for tensor in header.tensors:
            if tensor.name == name:
                return read_int64_tensor(path, header, tensor)
    raise KeyError(name)


def _part_paths(path: Path, header: Header, count: int) -> tuple[Path, ...]:
    """The files of all parts by llama.cpp's naming rule (`llama_split_path`)."""
    number = (header.integer("split.no") or 0) + 1
    match = _PART_NAME.fullmatch(path.name)
    if not match or int(match["count"]) != count or int(match["number"]) != number:
        raise GgufError(
            FileFault.MISSING_PART,
            path,
            f"“{file_name(path)}” is part {number:,} of {count:,}, but its name does not say so.",
            "The other parts are found by their names only.",
            _NAME_HINT,
        )
    prefix = match["prefix"]
    return tuple(
        path.with_name(f"{prefix}-{index:05d}-of-{count:05d}.gguf") for index in range(1, count + 1)
    )


def _check_together(paths: tuple[Path, ...], headers: tuple[Header, ...]) -> None:
    names: set[str] = set()
    for index, (path, header) in enumerate(zip(paths, headers, strict=True)):
        if header.integer("split.count") != len(paths) or header.integer("split.no") != index:
            raise _mixed(path, f"By its own account it is not part {index + 1} of {len(paths)}.")
        if any(tensor.name in names for tensor in header.tensors):
            raise _mixed(path, "It holds weights that an earlier part holds too.")
        names.update(tensor.name for tensor in header.tensors)
    expected = headers[0].integer("split.tensors.count")
    if expected is not None and expected != len(names):
        raise _mixed(paths[0], f"The set should hold {expected:,} tensors and has {len(names):,}.")


def _mixed(path: Path, detail: str) -> GgufError:
    return GgufError(
        FileFault.MIXED_PARTS,
        path,
        f"“{file_name(path)}” does not belong to the other parts beside it.",
        detail,
        "Download all parts again from the same place.",
    )
