"""What the model picker shows of a file, made from the library's description of it."""

from __future__ import annotations

from pathlib import Path

from slipstream.errors import UserError
from slipstream.library.model_file import ModelFile, describe_model_file, format_size
from slipstream.library.starter import starter_model_path
from slipstream.ui.model_picker import ModelEntry

STARTER_NAME = "SmolLM2 135M Instruct"  # the file calls itself after a training run


def display_name(model: ModelFile) -> str:
    """The name a person knows the model by."""
    starter = starter_model_path()
    return STARTER_NAME if starter is not None and starter == model.path else model.name


def entry_of(path: Path) -> ModelEntry:
    """The file as the picker shows it; one that cannot be used says why."""
    try:
        model = describe_model_file(path)
    except UserError as error:
        return ModelEntry(
            path=str(path), name=path.name, available=False, note=error.title.rstrip(".")
        )
    caption = [model.quantisation, format_size(model.size_bytes)]
    if model.context_length:
        caption.append(f"{_thousands(model.context_length)} context")
    details = [model.architecture, model.licence or "licence not stated"]
    return ModelEntry(
        path=str(path),
        name=display_name(model),
        caption=" · ".join(part for part in caption if part),
        details=" · ".join(part for part in details if part),
    )


def starter_entry() -> ModelEntry | None:
    """The bundled model, None where it is not installed."""
    path = starter_model_path()
    return None if path is None else entry_of(path)


def _thousands(tokens: int) -> str:
    return f"{tokens / 1024:.0f}k" if tokens >= 1024 else str(tokens)
