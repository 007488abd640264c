"""Recognises by their first bytes the files people mistake for GGUF models."""

from __future__ import annotations

from dataclasses import dataclass

_FIND_GGUF = "Look for a version of the model whose name ends in .gguf."


@dataclass(frozen=True, slots=True)
class ForeignFormat:
    """What a file is instead of a GGUF model, as a sentence, and what to try."""

    name: str
    sentence: str
    hint: str


_OLD_GGML = ForeignFormat(
    "ggml",
    "It is in the older GGML format, from before August 2023.",
    "Look for a GGUF version of the model, or convert it with llama.cpp's converter.",
)
_ARCHIVE = ForeignFormat(
    "archive", "It is a packed archive.", "Unpack it and choose the .gguf file inside."
)
_PYTORCH = ForeignFormat("pytorch", "It is a PyTorch file.", _FIND_GGUF)
_WEB_PAGE = ForeignFormat(
    "html",
    "It is a web page; the download saved the page instead of the model.",
    "Use the page's download link for the .gguf file itself.",
)
_UNKNOWN = ForeignFormat(
    "unknown", "It does not start with the letters GGUF, as such files do.", _FIND_GGUF
)

_STARTS: tuple[tuple[bytes, ForeignFormat], ...] = (
    (b"lmgg", _OLD_GGML),
    (b"fmgg", _OLD_GGML),
    (b"tjgg", _OLD_GGML),
    (b"algg", _OLD_GGML),
    (
        b"version https://git-lfs",
        ForeignFormat(
            "git-lfs",
            "It is only a Git LFS pointer; the model itself was not fetched.",
            "Run “git lfs pull” in its folder, or download the file from the web page.",
        ),
    ),
    (
        b"PK\x03\x04",
        ForeignFormat(
            "zip",
            "It is a zip archive, as PyTorch models and packed downloads are.",
            "Unpack it if a .gguf file is inside; otherwise look for a GGUF version of the model.",
        ),
    ),
    (b"\x80\x02", _PYTORCH),
    (b"\x1f\x8b", _ARCHIVE),
    (b"7z\xbc\xaf\x27\x1c", _ARCHIVE),
    (b"Rar!", _ARCHIVE),
    (b"\xfd7zXZ", _ARCHIVE),
    (b"BZh", _ARCHIVE),
    (b"\x28\xb5\x2f\xfd", _ARCHIVE),
    (b"\x89HDF", ForeignFormat("hdf5", "It is an HDF5 (Keras) file.", _FIND_GGUF)),
)


def foreign_format(start: bytes) -> ForeignFormat:
    """Name the format of a file that begins with `start` (up to 4 KiB of it); never fails."""
    for magic, found in _STARTS:
        if start.startswith(magic):
            return found
    if start[8:10] == b'{"' and int.from_bytes(start[:8], "little") < 2**31:
        return ForeignFormat("safetensors", "It is a safetensors file.", _FIND_GGUF)
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text.startswith((b"<!doctype html", b"<html", b"<head", b"<?xml")):
        return _WEB_PAGE
    if text.startswith((b"{", b"[")):
        return ForeignFormat(
            "json",
            "It is a JSON text, perhaps the error message of a download.",
            "Download the model again and look at what the server answered.",
        )
    if start and not start.strip(b"\0"):
        return ForeignFormat(
            "zeros",
            "It begins with zeros only; its space was reserved, but the download never wrote it.",
            "Let the download finish, or download it again.",
        )
    return _UNKNOWN
