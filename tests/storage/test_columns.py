from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipstream.chat.records import (
    AnswerRecord,
    FinishReason,
    GenerationStatistics,
    SpeculationStatistics,
)
from slipstream.storage.columns import (
    answer_from_column,
    answer_to_column,
    moment_from_column,
    moment_to_column,
    text_from_column,
    text_to_column,
)

ANY_TEXT = st.text(alphabet=st.characters(), max_size=30)  # NUL and lone surrogates included
NUMBERS = st.floats(allow_nan=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBERS | ANY_TEXT,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(ANY_TEXT | st.sampled_from(["$tuple", "$"]), inner, max_size=3)
        | st.dictionaries(st.integers(), inner, max_size=2)
    ),
    max_leaves=8,
)
STATISTICS = st.builds(
    GenerationStatistics,
    prompt_tokens=st.integers(0),
    cached_prompt_tokens=st.integers(0),
    generated_tokens=st.integers(0),
    context_tokens=st.integers(0),
    prefill_seconds=NUMBERS,
    time_to_first_token_seconds=st.none() | NUMBERS,
    decode_seconds=NUMBERS,
    reasoning_seconds=NUMBERS,
    reasoning_tokens=st.integers(0),
)
COUNTS = st.integers(0)
SPECULATION = st.builds(
    SpeculationStatistics,
    rounds=COUNTS,
    plain_passes=COUNTS,
    drafted=COUNTS,
    verified=COUNTS,
    accepted=COUNTS,
    accepted_at=st.lists(COUNTS, max_size=4).map(tuple),
    draft_seconds=NUMBERS,
    verify_seconds=NUMBERS,
    sample_seconds=NUMBERS,
    by_drafter=st.dictionaries(
        st.sampled_from(["mtp", "prompt-lookup"]),
        st.fixed_dictionaries({"rounds": COUNTS, "accepted": COUNTS}),
    ),
)
SPANS = st.lists(st.tuples(COUNTS, COUNTS), max_size=4).map(tuple)
ANSWERS = st.builds(
    AnswerRecord,
    model_name=ANY_TEXT,
    model_path=ANY_TEXT,
    finish_reason=st.sampled_from(FinishReason),
    seed=st.integers(0, 2**32 - 1),
    statistics=STATISTICS,
    stop_string=ANY_TEXT,
    settings=st.dictionaries(ANY_TEXT, VALUES, max_size=4),
    drafter=ANY_TEXT,
    draft_path=ANY_TEXT,
    verify=ANY_TEXT,
    speculation=SPECULATION,
    accepted_text=SPANS,
    accepted_reasoning=SPANS,
)


def example_answer(**settings: object) -> AnswerRecord:
    return AnswerRecord(
        "tiny", "/m/tiny.gguf", FinishReason.EOG, 7, GenerationStatistics(), settings=settings
    )


@settings(deadline=None)
@given(st.text(alphabet=st.characters()))
def test_any_text_comes_back(text: str) -> None:
    assert text_from_column(text_to_column(text)) == text


def test_plain_text_stays_text_and_damaged_bytes_stay_readable() -> None:
    assert text_to_column("naïve 🙂 \0") == "naïve 🙂 \0"
    assert isinstance(text_to_column("\ud83d\ude42"), bytes)
    assert text_from_column(b"ab\xff") == "ab\ufffd"


@settings(deadline=None)
@given(
    st.datetimes(
        min_value=datetime(2, 1, 1),
        max_value=datetime(9998, 1, 1),
        timezones=st.just(UTC)
        | st.builds(timezone, st.timedeltas(timedelta(0), timedelta(hours=14))),
    )
)
def test_any_time_comes_back_as_utc(moment: datetime) -> None:
    written = moment_to_column(moment)
    assert len(written) == len("2026-01-01T00:00:00.000000+00:00")
    read = moment_from_column(written)
    assert read == moment
    assert read.utcoffset() == timedelta(0)


@settings(deadline=None)
@given(ANSWERS)
def test_any_answer_comes_back(answer: AnswerRecord) -> None:
    read = answer_from_column(answer_to_column(answer))
    assert read == answer
    assert repr(read) == repr(answer)  # 1, 1.0 and True are equal, tuples hide in repr only


def test_what_json_does_not_know_is_tagged_in_strict_json() -> None:
    answer = example_answer(stop=("a",), logit_bias=((1, -math.inf),), seed=None, x=math.nan)
    written = answer_to_column(answer)
    content = json.loads(written, parse_constant=pytest.fail)
    assert content["settings"]["logit_bias"] == {"$tuple": [{"$tuple": [1, {"$float": "-inf"}]}]}
    settings = answer_from_column(written).settings
    assert settings["stop"] == ("a",)
    assert settings["seed"] is None
    assert math.isnan(settings["x"])  # type: ignore[arg-type]


def test_a_field_of_a_newer_version_is_passed_over() -> None:
    content = json.loads(answer_to_column(example_answer()))
    content["mood"] = "calm"
    content["statistics"]["drafted_tokens"] = 9
    content["speculation"]["trees"] = 9
    assert answer_from_column(json.dumps(content)) == example_answer()


def test_a_record_from_before_drafting_reads_as_undrafted() -> None:
    content = json.loads(answer_to_column(example_answer()))
    for name in ("drafter", "draft_path", "verify", "speculation"):
        del content[name]
    assert answer_from_column(json.dumps(content)) == example_answer()


def test_a_setting_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        answer_to_column(example_answer(x=object()))
