from __future__ import annotations

import dataclasses
import math

import pytest

from slipstream.engine.sampling import (
    MAX_SEED,
    PRESETS,
    SETTINGS,
    Group,
    SamplerSettings,
    settings_from_values,
)
from slipstream.errors import UsageError


def test_every_field_is_described() -> None:
    assert list(SETTINGS) == [item.name for item in dataclasses.fields(SamplerSettings)]
    for name, info in SETTINGS.items():
        assert info.label, name
        assert info.help.endswith("."), name


def test_the_six_people_use_come_first() -> None:
    main = [name for name, info in SETTINGS.items() if info.group is Group.MAIN]
    assert main == ["temperature", "top_k", "top_p", "min_p", "repeat_penalty", "max_tokens"]


@pytest.mark.parametrize("name", [n for n, i in SETTINGS.items() if i.minimum is not None])
def test_values_outside_the_range_are_refused_by_name(name: str) -> None:
    info = SETTINGS[name]
    assert info.minimum is not None
    assert info.maximum is not None
    for value in (info.minimum, info.maximum):
        kind = int if info.decimals == 0 else float
        SamplerSettings(**{name: kind(value)})
    for value in (info.minimum - 1, info.maximum + 1, math.nan):
        with pytest.raises(UsageError, match=name):
            SamplerSettings(**{name: value})


@pytest.mark.parametrize(
    "values",
    [
        {"stop": ("",)},
        {"logit_bias": ((-1, 0.0),)},
        {"logit_bias": ((1, math.nan),)},
        {"logit_bias": ((1, math.inf),)},
    ],
)
def test_useless_texts_and_biases_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        SamplerSettings().with_values(values)


def test_greedy_below_a_millionth() -> None:
    assert SamplerSettings(temperature=0).greedy
    assert SamplerSettings(temperature=9e-7).greedy
    assert not SamplerSettings(temperature=1e-6).greedy


def test_stored_values_come_back_and_bad_ones_fall_back() -> None:
    stored = {
        "temperature": 0.5,
        "top_k": "many",
        "stop": ["\n", "END"],
        "logit_bias": [[5, -1.5]],
        "seed": 7,
        "no_such_setting": 1,
        "min_p": 3.0,
        "dry_sequence_breakers": "ab",
    }
    assert settings_from_values(stored) == SamplerSettings(
        temperature=0.5, stop=("\n", "END"), logit_bias=((5, -1.5),), seed=7
    )


def test_changed_values_are_those_that_differ_from_the_defaults() -> None:
    settings = SamplerSettings(temperature=0.5, seed=0)
    assert settings.changed_values() == {"temperature": 0.5, "seed": 0}
    assert settings_from_values(settings.changed_values()) == settings


def test_presets_hold_usable_values() -> None:
    assert len({preset.name for preset in PRESETS}) == len(PRESETS)
    for preset in PRESETS:
        assert preset.description
        SamplerSettings().with_values(preset.values)


def test_the_largest_seed_is_not_the_mark_for_a_random_one() -> None:
    assert MAX_SEED == 0xFFFFFFFE
