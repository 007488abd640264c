"""How values are written into database columns and read back without loss."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from itertools import chain
from typing import Any, TypeVar, cast

from slipstream.chat.records import (
    AnswerRecord,
    FinishReason,
    GenerationStatistics,
    Spans,
    SpeculationStatistics,
)

_Record = TypeVar("_Record", GenerationStatistics, SpeculationStatistics)


def text_to_column(text: str) -> str | bytes:
    """The text itself, or its bytes when lone surrogates keep it from being stored as TEXT."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def text_from_column(value: str | bytes) -> str:
    """What `text_to_column` was given; bytes that damage made unreadable become U+FFFD."""
    if isinstance(value, str):
        return value
    try:
        return value.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return value.decode("utf-8", "replace")


def moment_to_column(moment: datetime) -> str:
    """An aware time as ISO 8601 in UTC, of one length, so that text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def moment_from_column(value: str) -> datetime:
    """An aware UTC time. Raises `ValueError` for anything else."""
    return datetime.fromisoformat(value).astimezone(UTC)


def answer_to_column(answer: AnswerRecord) -> str | bytes:
    """The record as strict JSON. Raises `TypeError` for a setting that JSON cannot be made to hold.

    Tuples, numbers that are not finite, and mappings whose keys are not plain names are tagged:
    {"$tuple": [...]}, {"$float": "-inf"}, {"$map": [[key, value], ...]}.
    """
    content = {
        "model_name": answer.model_name,
        "model_path": answer.model_path,
        "finish_reason": answer.finish_reason.value,
        "seed": answer.seed,
        "stop_string": answer.stop_string,
        "statistics": asdict(answer.statistics),
        "settings": answer.settings,
        "drafter": answer.drafter,
        "draft_path": answer.draft_path,
        "verify": answer.verify,
        "speculation": asdict(answer.speculation),
        "accepted_text": list(chain.from_iterable(answer.accepted_text)),
        "accepted_reasoning": list(chain.from_iterable(answer.accepted_reasoning)),
    }
    return text_to_column(json.dumps(_tagged(content), ensure_ascii=False, allow_nan=False))


def answer_from_column(value: str | bytes) -> AnswerRecord:
    """What `answer_to_column` was given; fields that a newer version added are left out.

    Raises `ValueError`, `TypeError` or `KeyError` for what is no such record.
    """
    content = cast(dict[str, Any], _untagged(json.loads(text_from_column(value))))
    return AnswerRecord(
        model_name=content["model_name"],
        model_path=content["model_path"],
        finish_reason=FinishReason(content["finish_reason"]),
        seed=content["seed"],
        statistics=_known(GenerationStatistics, content["statistics"]),
        stop_string=content["stop_string"],
        settings=content["settings"],
        drafter=content.get("drafter", "none"),
        draft_path=content.get("draft_path", ""),
        verify=content.get("verify", "compare"),
        speculation=_known(SpeculationStatistics, content.get("speculation", {})),
        accepted_text=_spans(content.get("accepted_text", ())),
        accepted_reasoning=_spans(content.get("accepted_reasoning", ())),
    )


def _spans(ends: Sequence[int]) -> Spans:
    """Pairs from a list in which starts and ends alternate."""
    return tuple(zip(ends[::2], ends[1::2], strict=True))


def _known(record: type[_Record], values: Mapping[str, Any]) -> _Record:
    """The record from stored values, without those it does not know."""
    names = {item.name for item in fields(record)}
    return record(**{name: value for name, value in values.items() if name in names})


def _tagged(value: object) -> object:
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, tuple):
        return {"$tuple": [_tagged(item) for item in value]}
    if isinstance(value, list):
        return [_tagged(item) for item in value]
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: _tagged(item) for key, item in value.items()}
        return {"$map": [[_tagged(key), _tagged(item)] for key, item in value.items()]}
    raise TypeError(f"a setting of type {type(value).__name__} cannot be stored")


def _untagged(value: object) -> object:
    if isinstance(value, list):
        return [_untagged(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (tag, content), *_ = value.items()
        if tag in _TAGS:
            return _TAGS[tag](content)
    return {key: _untagged(item) for key, item in value.items()}


_TAGS: dict[str, Callable[[Any], object]] = {
    "$tuple": lambda items: tuple(_untagged(item) for item in items),
    "$float": float,
    "$map": lambda pairs: {_untagged(key): _untagged(item) for key, item in pairs},
}
