"""A model file as people see it: name, size, quantisation, what it is for. Loads nothing.

Facts come from the header alone (`engine.gguf`), so describing takes milliseconds for any size.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from slipstream.engine.file_role import held_mtp_layers
from slipstream.engine.gguf import (
    ByteOrder,
    FileFault,
    GgufError,
    Header,
    Value,
    file_name,
    printable,
)
from slipstream.engine.gguf_errors import FilePath
from slipstream.engine.model_parts import ModelParts, load_obstacle, read_parts, split_stem
from slipstream.library.model_kind import ModelKind, model_kind
from slipstream.library.quantisation import QUANTISATION_NAMES, quantisation_name

CACHE_SIZE = 4096
"""Descriptions kept in memory, about 2 kB each."""

JsonValue = str | int | bool | None

_MEANINGLESS_NAMES = frozenset({"", ".", "model", "models", "hf", "unknown", "none", "tmp"})

_MEANINGLESS = re.compile(r"[/\\]|^[0-9a-f]{16,}$")
"""A path or a commit's hash that a converter took for a name."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """What can be told about a model without loading it.

    `path` is absolute; it is the first part where the model is split into `part_count` files, and
    `size_bytes`, `parameter_count` and `tensor_count` cover all parts. Texts are "" and numbers
    None where the file does not say; `context_length` is the trained one, in tokens. `mtp_layers`
    counts MTP heads built into the model. `obstacle` is a sentence saying why llama.cpp cannot load
    the file, "" where nothing in the header speaks against it.
    """

    path: Path
    name: str
    kind: ModelKind
    size_bytes: int
    part_count: int
    quantisation: str
    architecture: str
    parameter_count: int
    tensor_count: int
    context_length: int | None
    embedding_length: int | None
    block_count: int | None
    vocabulary_size: int | None
    tokenizer: str
    licence: str
    has_chat_template: bool
    mtp_layers: int
    gguf_version: int
    byte_order: ByteOrder
    obstacle: str

    @property
    def is_split(self) -> bool:
        """True where the model is spread over several files."""
        return self.part_count > 1


def describe_model_file(path: FilePath) -> ModelFile:
    """Describe the model that `path` is, or is one part of; remembered while no part changes.

    Raises ModelFileError (a GgufError) for whatever is wrong with the file or one of its parts.
    """
    return _descriptions.describe(Path(path))


def require_chat_model(model: ModelFile) -> None:
    """Raise ModelFileError unless `model` can be loaded to chat with."""
    name = file_name(model.path)
    if model.kind is not ModelKind.CHAT:
        raise GgufError(
            FileFault.WRONG_KIND,
            model.path,
            f"“{name}” cannot chat.",
            f"It is {model.kind.description}.",
            "Choose a chat model.",
        )
    if model.obstacle:
        raise GgufError(
            FileFault.WRONG_KIND,
            model.path,
            f"“{name}” cannot be loaded.",
            model.obstacle,
            "Look for a newer conversion of the model.",
        )


def facts(model: ModelFile) -> dict[str, JsonValue]:
    """The fields of `model` as plain JSON values, for `slipstream inspect --json`.

    Keys are the fields' names plus `is_split`; `path` is exact where it is valid text, else
    its bad bytes are escaped.
    """
    values = asdict(model)
    values["path"] = printable(str(model.path), limit=2**16)
    values["kind"] = model.kind.value
    values["byte_order"] = model.byte_order.value
    values["is_split"] = model.is_split
    return values


def facts_text(model: ModelFile) -> str:
    """The facts for people, one aligned "Label: value" line each, without a last line break."""
    parts = f" in {model.part_count:,} files" if model.is_split else ""
    lines = [
        ("Name", model.name),
        ("File", printable(str(model.path), limit=2**16)),
        ("Kind", _kind_text(model)),
        ("Size", f"{format_size(model.size_bytes)}{parts} ({model.size_bytes:,} bytes)"),
        ("Quantisation", model.quantisation),
        ("Architecture", model.architecture),
        ("Parameters", format_count(model.parameter_count) if model.parameter_count else ""),
        ("Context", _counted(model.context_length, "tokens")),
        ("Layers", _counted(model.block_count)),
        ("Width", _counted(model.embedding_length)),
        ("Vocabulary", _vocabulary_text(model)),
        ("Chat template", "yes" if model.has_chat_template else "none"),
        ("Licence", model.licence or "not stated"),
        ("Format", f"GGUF version {model.gguf_version}, {model.byte_order.value}-endian"),
        ("Obstacle", model.obstacle),
    ]
    width = max(len(label) for label, _ in lines) + 1
    return "\n".join(f"{label + ':':<{width}} {value}" for label, value in lines if value)


def format_size(size_bytes: int) -> str:
    """A size in decimal units, as file managers and download pages show it: "98.4 MB"."""
    value = float(size_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 999.95:
            return f"{size_bytes} bytes" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def format_count(count: int) -> str:
    """A number of parameters: "134.5 M", "7.2 B"."""
    for limit, unit in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if count >= limit * 0.9995:
            return f"{count / limit:.1f} {unit}"
    return str(count)


def _kind_text(model: ModelFile) -> str:
    heads = f", with {model.mtp_layers} MTP head(s) built in" if model.mtp_layers else ""
    return model.kind.description + (heads if model.kind is ModelKind.CHAT else "")


def _vocabulary_text(model: ModelFile) -> str:
    size = _counted(model.vocabulary_size, "tokens")
    return f"{size} ({model.tokenizer})" if size and model.tokenizer else size


def _counted(value: int | None, unit: str = "") -> str:
    return "" if value is None else f"{value:,} {unit}".rstrip()


def _describe(parts: ModelParts) -> ModelFile:
    header, path = parts.whole, parts.first
    tensors = header.tensors
    obstacle = load_obstacle(parts)
    architecture = header.architecture
    vocabulary = header.array_length("tokenizer.ggml.tokens")
    return ModelFile(
        path=path,
        name=_display_name(header, path),
        kind=model_kind(header),
        size_bytes=header.file_size,
        part_count=len(parts.paths),
        quantisation=quantisation_name(header.integer("general.file_type"), tensors),
        architecture=printable(architecture, limit=60),
        parameter_count=sum(tensor.elements for tensor in tensors),
        tensor_count=len(tensors),
        context_length=_positive(header, f"{architecture}.context_length"),
        embedding_length=_positive(header, f"{architecture}.embedding_length"),
        block_count=_positive(header, f"{architecture}.block_count"),
        vocabulary_size=vocabulary or _positive(header, f"{architecture}.vocab_size"),
        tokenizer=printable(header.text("tokenizer.ggml.model") or "", limit=60),
        licence=_words(header.metadata, "general.license", "general.license.name"),
        has_chat_template=_has_chat_template(header),
        mtp_layers=held_mtp_layers(header),
        gguf_version=header.version,
        byte_order=header.byte_order,
        obstacle=f"It {obstacle}." if obstacle else "",
    )


def _positive(header: Header, key: str) -> int | None:
    value = header.integer(key)
    return value if value is not None and value > 0 else None


def _words(metadata: Mapping[str, Value], *keys: str) -> str:
    """The first text, or list of texts, that one of `keys` holds."""
    for key in keys:
        value = metadata.get(key)
        values = value if isinstance(value, tuple) else (value,)
        words = [item.strip() for item in values if isinstance(item, str) and item.strip()]
        if words:
            return printable(", ".join(words), limit=120)
    return ""


def _has_chat_template(header: Header) -> bool:
    return any(
        key == "tokenizer.chat_template" or key.startswith("tokenizer.chat_template.")
        for key, value in header.metadata.items()
        if isinstance(value, str) and value.strip()
    )


def _display_name(header: Header, path: Path) -> str:
    """The name the file gives itself; one made from the file's name where that says nothing."""
    given = (header.text("general.name") or "").strip()
    if given.casefold() in _MEANINGLESS_NAMES or _MEANINGLESS.search(given):
        return _name_from_file(path)
    return printable(given, limit=120)


def _name_from_file(path: Path) -> str:
    """The file's stem without part number and quantisation, its words apart."""
    stem = split_stem(path.stem if path.suffix.casefold() == ".gguf" else path.name)
    tail = re.fullmatch(r"(.+?)[-._ ](\w+)", stem)
    if tail and tail[2].upper() in QUANTISATION_NAMES:
        stem = tail[1]
    # A dot before a digit belongs to a version ("3.1").
    words = [word for word in re.split(r"[-_ ]|\.(?=\D)", stem) if word]
    return printable(" ".join(words) or stem, limit=120)


Identity = tuple[tuple[Path, int, int], ...]


class _Descriptions:
    """Descriptions by file identity: the path, size and change time of every part."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[Path, tuple[Identity, ModelFile]] = OrderedDict()

    def describe(self, path: Path) -> ModelFile:
        key = path.absolute()
        with self._lock:
            known = self._known.get(key)
        if known is not None and _identity(tuple(part for part, _, _ in known[0])) == known[0]:
            with self._lock:
                if key in self._known:
                    self._known.move_to_end(key)
            return known[1]
        before = _identity((key,))
        parts = read_parts(key)
        model = _describe(parts)
        identity = _identity(parts.paths)
        # A file still being written is described but not remembered.
        if identity and before and before[0] in identity:
            with self._lock:
                self._known[key] = (identity, model)
                while len(self._known) > CACHE_SIZE:
                    self._known.popitem(last=False)
        return model


def _identity(paths: tuple[Path, ...]) -> Identity:
    """Empty where a file cannot be asked; the reader then says why."""
    try:
        found = [(path, path.stat()) for path in paths]
    except (OSError, ValueError):
        return ()
    return tuple((path, status.st_size, status.st_mtime_ns) for path, status in found)


_descriptions = _Descriptions()
