"""What a header says about the shape of a model, in llama.cpp's terms (src/llama-hparams.h).

Headers hold the tensors of all parts (`ModelParts.whole`); a value that lacks is None.
"""

from __future__ import annotations

from slipstream.engine.gguf import Header, printable


def hidden_size(header: Header) -> int | None:
    """`llama_model_n_embd`: the width of the states between the layers."""
    return header.integer(f"{header.architecture}.embedding_length")


def state_size(header: Header) -> int | None:
    """`llama_model_n_embd_out`: the width of the states the heads read."""
    return header.integer(f"{header.architecture}.embedding_length_out") or hidden_size(header)


def trunk_layers(header: Header) -> int | None:
    """`llama_model_n_layer`: MTP layers are counted in `block_count` and do not belong to it."""
    count = header.integer(f"{header.architecture}.block_count")
    if count is None:
        return None
    trunk = count - (header.integer(f"{header.architecture}.nextn_predict_layers") or 0)
    return trunk if trunk >= 0 else None


def tensor_shape(header: Header, name: str) -> tuple[int, ...] | None:
    """A tensor's dimensions, row length first, at least two of them; None where it lacks."""
    for tensor in header.tensors:
        if tensor.name == name:
            missing = 2 - len(tensor.dimensions)
            return (*tensor.dimensions, *(1 for _ in range(missing)))
    return None


def architecture_name(header: Header) -> str:
    """The architecture as it can be shown."""
    return printable(header.architecture, limit=60) or "(none)"


def shown(value: int | None) -> str:
    """A number for people, or that there is none."""
    return "unknown" if value is None else f"{value:,}"
