"""Whether two files mean the same text by the same token ids.

The rules are those of llama.cpp's `common_speculative_are_compatible` (common/speculative.cpp),
fed with what its vocabulary loader (`llama_vocab::impl::load`, src/llama-vocab.cpp) makes of a
header, so that nothing needs loading.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from slipstream.engine.gguf import (
    ArrayInfo,
    FileFault,
    GgufError,
    Header,
    ValueType,
    file_name,
    printable,
    read_strings,
)

MAX_SIZE_DIFFERENCE = 128
"""`SPEC_VOCAB_MAX_SIZE_DIFFERENCE`: vocabularies are often padded to different lengths."""

FIRST_COMPARED = 5
"""`SPEC_VOCAB_CHECK_START_TOKEN_ID`: special tokens lie below and may differ."""

TOKENS_KEY = "tokenizer.ggml.tokens"
CACHED_LISTS = 4
"""Token lists kept in memory; the largest take about 20 MB, equal ones share theirs."""

_TYPES = {
    "llama": "SentencePiece",
    "gpt2": "byte-pair",
    "hybriddna": "byte-pair",
    "whitespace": "byte-pair",
    "gemma4": "byte-pair",
    "bert": "WordPiece",
    "t5": "unigram",
    "rwkv": "RWKV",
    "plamo2": "PLaMo-2",
    "test": "test",
    "no_vocab": "empty",
    "none": "empty",
}
"""`tokenizer.ggml.model` to `llama_vocab_type`."""

_SPECIAL_IDS: dict[str, tuple[int | None, int | None]] = {
    "llama": (1, 2),
    "gpt2": (11, 11),
    "hybriddna": (11, 11),
    "whitespace": (11, 11),
    "bert": (101, None),
    "t5": (None, 1),
    "plamo2": (1, 2),
}
"""BOS and EOS ids where the file names none; for other tokenizers there are none."""

_NO_DEFAULT_BOS = frozenset({"chatglm-bpe", "glm4", "glm5"})
_BOS_FIRST = frozenset(
    {
        "llama3",
        "llama-v3",
        "llama-bpe",
        "falcon3",
        "falcon-h1",
        "pixtral",
        "midm-2.0",
        "lfm2",
        "jina-v5-nano",
        "tekken",
        "chameleon",
    }
)
"""Byte-pair pre-tokenizers that add BOS where the file does not say."""

_BOS_ALWAYS = frozenset({"gemma4", "granite-embed-multi-311m"})
"""Byte-pair pre-tokenizers that add BOS whatever the file says."""


@dataclass(frozen=True, slots=True)
class VocabularyTraits:
    """A vocabulary without its tokens: `model` as the file has it, `type` in a word.

    `type` is "" for a tokenizer llama.cpp does not know. `bos` and `eos` are token ids or None;
    the flags say whether they are added to a tokenised text.
    """

    model: str
    type: str
    size: int
    add_bos: bool
    bos: int | None
    add_eos: bool
    eos: int | None


@dataclass(frozen=True, slots=True)
class TokenDifference:
    """The first token two vocabularies spell differently; texts are printable."""

    id: int
    target: str
    draft: str


def vocabulary_traits(header: Header) -> VocabularyTraits:
    """What llama.cpp would make of the tokenizer keys; its defaults where they are absent."""
    model = header.text("tokenizer.ggml.model") or ""
    kind = _TYPES.get(model, "")
    if kind == "empty":
        size = header.integer(f"{header.architecture}.vocab_size") or 0
        return VocabularyTraits(model, kind, max(size, 0), False, None, False, None)
    # the token list decides, padding included: the weights must have exactly as many rows
    size = header.array_length(TOKENS_KEY) or 0
    pre = "gemma4" if model == "gemma4" else header.text("tokenizer.ggml.pre") or ""
    pre = pre if kind == "byte-pair" else ""
    bos, eos = _SPECIAL_IDS.get(model, (None, None))
    if pre in _NO_DEFAULT_BOS:
        bos = None
    add_bos = header.flag("tokenizer.ggml.add_bos_token")
    if add_bos is None:
        add_bos = kind in {"SentencePiece", "WordPiece"} or pre in _BOS_FIRST
    add_eos = header.flag("tokenizer.ggml.add_eos_token")
    return VocabularyTraits(
        model=model,
        type=kind,
        size=size,
        add_bos=add_bos or pre in _BOS_ALWAYS,
        bos=_special_id(header, "tokenizer.ggml.bos_token_id", bos, size),
        add_eos=kind == "unigram" if add_eos is None else add_eos,
        eos=_special_id(header, "tokenizer.ggml.eos_token_id", eos, size),
    )


def token_texts_obstacle(header: Header) -> str | None:
    """Why the token list cannot be compared, in words that follow "it"; None where it can."""
    value = header.metadata.get(TOKENS_KEY)
    if isinstance(value, ArrayInfo):
        texts = value.type is ValueType.STRING
    else:
        texts = isinstance(value, tuple) and all(isinstance(item, str) for item in value)
    if vocabulary_traits(header).type == "empty":
        return "has no vocabulary"
    return None if texts and header.array_length(TOKENS_KEY) else "has no list of token texts"


def type_obstacle(target: VocabularyTraits, draft: VocabularyTraits) -> str | None:
    """Why the two kinds of vocabulary do not go together; None where they do."""
    for who, traits in (("target", target), ("draft", draft)):
        if not traits.type:
            named = f"“{printable(traits.model, limit=60)}”" if traits.model else "without a name"
            return f"The {who}'s tokenizer, {named}, is unknown to llama.cpp."
    if target.type != draft.type:
        return (
            f"The target's vocabulary is of the {target.type} type ({target.model}), "
            f"the draft's of the {draft.type} type ({draft.model})."
        )
    return None


def marker_obstacle(target: VocabularyTraits, draft: VocabularyTraits) -> str | None:
    """Why the tokens put around a text differ; None where they are the same."""
    return _marker_obstacle(
        "a beginning-of-text", "before", (target.add_bos, target.bos), (draft.add_bos, draft.bos)
    ) or _marker_obstacle(
        "an end-of-text", "after", (target.add_eos, target.eos), (draft.add_eos, draft.eos)
    )


def size_obstacle(target: VocabularyTraits, draft: VocabularyTraits) -> str | None:
    """Why the two sizes are too far apart; None where they are not."""
    if abs(target.size - draft.size) <= MAX_SIZE_DIFFERENCE:
        return None
    return (
        f"The target has {target.size:,} tokens and the draft {draft.size:,}; "
        f"they may differ by at most {MAX_SIZE_DIFFERENCE}."
    )


def first_difference(target: Path, draft: Path) -> TokenDifference | None:
    """The first token, from `FIRST_COMPARED` on, that both files have and spell differently.

    Reads the token lists, up to 0.3 s each for the largest; remembered while the files do not
    change. Raises ModelFileError.
    """
    ours, theirs = _lists.read(target), _lists.read(draft)
    if ours is theirs or ours == theirs:
        return None
    return _first_difference(ours, theirs)


def _first_difference(target: Sequence[str], draft: Sequence[str]) -> TokenDifference | None:
    for index, (ours, theirs) in enumerate(zip(target, draft, strict=False)):
        if ours == theirs or index < FIRST_COMPARED:
            continue
        if _compared(ours, index) != _compared(theirs, index):
            return TokenDifference(index, _shown(ours), _shown(theirs))
    return None


def _compared(text: str, index: int) -> str:
    """The text as llama.cpp compares it: a C string, and never an empty one."""
    return text.partition("\0")[0] if text else f"[EMPTY_{index}]"


def _shown(text: str) -> str:
    return printable(text, limit=80)


def _special_id(header: Header, key: str, default: int | None, size: int) -> int | None:
    given = header.integer(key)
    if given is not None and 0 <= given < size:
        return given
    return default if default is not None and default < size else None


def _marker_obstacle(
    name: str, where: str, target: tuple[bool, int | None], draft: tuple[bool, int | None]
) -> str | None:
    (target_adds, target_id), (draft_adds, draft_id) = target, draft
    if target_adds != draft_adds:
        one, other = ("target", "draft") if target_adds else ("draft", "target")
        return f"The {one} puts {name} token {where} every text and the {other} does not."
    if target_adds and target_id != draft_id:
        return (
            f"The {name.partition(' ')[2]} token is {_token(target_id)} in the target "
            f"and {_token(draft_id)} in the draft."
        )
    return None


def _token(index: int | None) -> str:
    return "missing" if index is None else f"token {index}"


class _TokenLists:
    """Token lists by file identity: path, size and change time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[Path, int, int], tuple[str, ...]] = OrderedDict()

    def read(self, path: Path) -> tuple[str, ...]:
        key = _identity(path)
        with self._lock:
            if key is not None and key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        try:
            tokens = read_strings(path, TOKENS_KEY)
        except KeyError as error:
            raise GgufError(
                FileFault.DAMAGED,
                path,
                f"“{file_name(path)}” has changed while it was read.",
                "Its list of tokens is no longer there.",
                "Try again when the file is complete.",
            ) from error
        # a file that changed while it was read is not remembered
        if key is None or key != _identity(path):
            return tokens
        with self._lock:
            tokens = next((known for known in self._known.values() if known == tokens), tokens)
            self._known[key] = tokens
            while len(self._known) > CACHED_LISTS:
                self._known.popitem(last=False)
        return tokens


def _identity(path: Path) -> tuple[Path, int, int] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return path, status.st_size, status.st_mtime_ns


_lists = _TokenLists()
