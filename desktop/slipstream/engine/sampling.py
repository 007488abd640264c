"""Sampler settings: the one place for their ranges, defaults, help texts, order and presets.

The command line makes its flags and the window its controls from the fields below; the native
chain is built from them in `sampler_chain`. Must not import llama_cpp.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

from slipstream.errors import UsageError

GREEDY_BELOW = 1e-6
"""Temperatures below this take the likeliest token."""

MAX_SEED = 2**32 - 2
"""Largest seed; 2**32 - 1 is llama.cpp's own mark for "choose one"."""

SAMPLING_ORDER: tuple[str, ...] = (
    "logit bias",
    "penalties",
    "DRY",
    "top-n-sigma",
    "top-k",
    "typical",
    "top-p",
    "min-p",
    "XTC",
    "temperature",
    "draw",
)
"""The order in which a plain chain works on a distribution; the same as llama.cpp's default.

A grammar filters what is left to draw from. Mirostat replaces everything between DRY and the draw
by temperature and itself; a temperature of 0 replaces everything after DRY by the likeliest token.
"""


class Group(StrEnum):
    """Where a setting stands in the window."""

    MAIN = "main"  # the six people use
    MORE = "more"  # folded
    TEXT = "text"  # typed rather than slid: seed, stop strings, grammar, biases


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """What a setting is called, what it does and which values it may have."""

    label: str
    help: str
    group: Group
    minimum: float | None = None
    maximum: float | None = None
    step: float = 1.0
    decimals: int = 0
    special: str = ""  # what the minimum means in words, where it means something else


def _setting(default: Any, label: str, help_text: str, group: Group, **limits: Any) -> Any:
    info = SettingInfo(label=label, help=help_text, group=group, **limits)
    return field(default=default, metadata={"info": info})


@dataclass(frozen=True, slots=True)
class SamplerSettings:
    """How the next token is chosen and when the answer ends.

    Raises `UsageError` naming the field for a value outside its range.
    """

    temperature: float = _setting(
        0.8,
        "Temperature",
        "How freely words are chosen: 0 always takes the likeliest, higher values take more risks.",
        Group.MAIN,
        minimum=0.0,
        maximum=5.0,
        step=0.05,
        decimals=2,
        special="Greedy",
    )
    top_k: int = _setting(
        40,
        "Top-k",
        "Only the k likeliest tokens stay in the draw; 0 keeps all of them.",
        Group.MAIN,
        minimum=0,
        maximum=1000,
        special="Off",
    )
    top_p: float = _setting(
        0.95,
        "Top-p",
        "Only the likeliest tokens that together reach this probability stay; 1 keeps all of them.",
        Group.MAIN,
        minimum=0.0,
        maximum=1.0,
        step=0.01,
        decimals=2,
    )
    min_p: float = _setting(
        0.05,
        "Min-p",
        "Drops tokens less likely than this share of the likeliest one; 0 drops none.",
        Group.MAIN,
        minimum=0.0,
        maximum=1.0,
        step=0.01,
        decimals=2,
        special="Off",
    )
    repeat_penalty: float = _setting(
        1.0,
        "Repeat penalty",
        "Makes tokens that occurred recently less likely; 1 is off.",
        Group.MAIN,
        minimum=0.5,
        maximum=2.0,
        step=0.01,
        decimals=2,
    )
    max_tokens: int = _setting(
        2048,
        "Max tokens",
        "The longest answer in tokens; -1 goes on until the context is full.",
        Group.MAIN,
        minimum=-1,
        maximum=1_000_000,
        step=64,
        special="No limit",
    )
    repeat_last_n: int = _setting(
        64,
        "Penalty window",
        "How many recent tokens the penalties look at; 0 turns them off, "
        "-1 takes the whole context.",
        Group.MORE,
        minimum=-1,
        maximum=1_000_000,
        step=16,
        special="All",
    )
    frequency_penalty: float = _setting(
        0.0,
        "Frequency penalty",
        "Makes a token less likely with every time it occurred.",
        Group.MORE,
        minimum=-2.0,
        maximum=2.0,
        step=0.05,
        decimals=2,
    )
    presence_penalty: float = _setting(
        0.0,
        "Presence penalty",
        "Makes a token less likely once it has occurred at all.",
        Group.MORE,
        minimum=-2.0,
        maximum=2.0,
        step=0.05,
        decimals=2,
    )
    dry_multiplier: float = _setting(
        0.0,
        "DRY multiplier",
        "Strength of the penalty on repeating whole phrases; 0 is off.",
        Group.MORE,
        minimum=0.0,
        maximum=10.0,
        step=0.05,
        decimals=2,
        special="Off",
    )
    dry_base: float = _setting(
        1.75,
        "DRY base",
        "How steeply the DRY penalty grows with the length of the phrase.",
        Group.MORE,
        minimum=1.0,
        maximum=10.0,
        step=0.05,
        decimals=2,
    )
    dry_allowed_length: int = _setting(
        2,
        "DRY allowed length",
        "Repeated phrases up to this many tokens cost nothing.",
        Group.MORE,
        minimum=0,
        maximum=1000,
    )
    dry_penalty_last_n: int = _setting(
        -1,
        "DRY window",
        "How many recent tokens DRY looks at; 0 turns it off, -1 takes the whole context.",
        Group.MORE,
        minimum=-1,
        maximum=1_000_000,
        step=64,
        special="All",
    )
    top_n_sigma: float = _setting(
        -1.0,
        "Top-n-sigma",
        "Keeps tokens whose score lies within n standard deviations of the best; 0 or less is off.",
        Group.MORE,
        minimum=-1.0,
        maximum=10.0,
        step=0.1,
        decimals=2,
        special="Off",
    )
    typical_p: float = _setting(
        1.0,
        "Typical-p",
        "Prefers tokens about as surprising as expected; 1 is off.",
        Group.MORE,
        minimum=0.0,
        maximum=1.0,
        step=0.01,
        decimals=2,
    )
    xtc_probability: float = _setting(
        0.0,
        "XTC probability",
        "How often the likeliest choices are left out to make the text less predictable; 0 is off.",
        Group.MORE,
        minimum=0.0,
        maximum=1.0,
        step=0.05,
        decimals=2,
        special="Off",
    )
    xtc_threshold: float = _setting(
        0.1,
        "XTC threshold",
        "Tokens above this probability may be left out by XTC; above 0.5 it never acts.",
        Group.MORE,
        minimum=0.0,
        maximum=1.0,
        step=0.01,
        decimals=2,
    )
    dynatemp_range: float = _setting(
        0.0,
        "Dynamic temperature range",
        "Lets the temperature move by this much either way with the model's certainty; 0 is off.",
        Group.MORE,
        minimum=0.0,
        maximum=5.0,
        step=0.05,
        decimals=2,
        special="Off",
    )
    dynatemp_exponent: float = _setting(
        1.0,
        "Dynamic temperature exponent",
        "How certainty maps to the temperature within its dynamic range.",
        Group.MORE,
        minimum=0.0,
        maximum=10.0,
        step=0.1,
        decimals=2,
    )
    mirostat: int = _setting(
        0,
        "Mirostat",
        "Steers the surprise of the text towards a target instead of top-k, top-p "
        "and the like: 0 off, 1 or 2 the version.",
        Group.MORE,
        minimum=0,
        maximum=2,
        special="Off",
    )
    mirostat_tau: float = _setting(
        5.0,
        "Mirostat target",
        "The surprise per token that mirostat aims at (tau).",
        Group.MORE,
        minimum=0.0,
        maximum=20.0,
        step=0.1,
        decimals=2,
    )
    mirostat_eta: float = _setting(
        0.1,
        "Mirostat rate",
        "How fast mirostat corrects itself (eta).",
        Group.MORE,
        minimum=0.0,
        maximum=1.0,
        step=0.01,
        decimals=2,
    )
    seed: int | None = _setting(
        None,
        "Seed",
        "The same seed with the same settings gives the same answer; "
        "empty takes a new one each time.",
        Group.TEXT,
        minimum=0,
        maximum=MAX_SEED,
    )
    stop: tuple[str, ...] = _setting(
        (),
        "Stop strings",
        "The answer ends before the first of these strings.",
        Group.TEXT,
    )
    grammar: str = _setting(
        "",
        "Grammar",
        "A GBNF grammar that the answer must follow.",
        Group.TEXT,
    )
    logit_bias: tuple[tuple[int, float], ...] = _setting(
        (),
        "Logit bias",
        "Token ids with a value added to their score, written id=value; -inf forbids a token.",
        Group.TEXT,
    )
    dry_sequence_breakers: tuple[str, ...] = _setting(
        ("\n", ":", '"', "*"),
        "DRY sequence breakers",
        "Strings at which DRY starts counting anew.",
        Group.TEXT,
    )

    def __post_init__(self) -> None:
        for name, info in SETTINGS.items():
            value = getattr(self, name)
            if isinstance(value, (int, float)):
                _check_range(name, value, info)
        if any(not text for text in self.stop):
            raise UsageError(
                "A stop string is empty.",
                "An empty stop string would end every answer at once.",
                "Leave it out.",
            )
        for token, bias in self.logit_bias:
            if token < 0 or math.isnan(bias) or bias == math.inf:
                raise UsageError(
                    f"The logit bias {token}={bias} cannot be used.",
                    "A bias needs a token id of 0 or more and a number.",
                    "Write it as 123=-1.5, or 123=-inf to forbid the token.",
                )

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is taken without a draw."""
        return self.temperature < GREEDY_BELOW

    def with_values(self, values: Mapping[str, object]) -> SamplerSettings:
        """A copy with these fields replaced. Raises `UsageError` for a bad value."""
        return dataclasses.replace(self, **cast(dict[str, Any], dict(values)))

    def changed_values(self) -> dict[str, object]:
        """The fields that differ from their defaults, by name."""
        return {
            item.name: getattr(self, item.name)
            for item in dataclasses.fields(self)
            if getattr(self, item.name) != item.default
        }


def _check_range(name: str, value: float, info: SettingInfo) -> None:
    low, high = info.minimum, info.maximum
    if (
        math.isnan(value)
        or (low is not None and value < low)
        or (high is not None and value > high)
    ):
        raise UsageError(
            f"{info.label} cannot be {value:g}.",
            f"{name} must lie between {low:,.10g} and {high:,.10g}.",
            "Choose a value in that range.",
        )


SETTINGS: dict[str, SettingInfo] = {
    item.name: item.metadata["info"] for item in dataclasses.fields(SamplerSettings)
}
"""Every field of `SamplerSettings` in the order it is shown, with what to know about it."""


def settings_from_values(values: Mapping[str, object]) -> SamplerSettings:
    """Settings from stored values; unknown names and unusable values fall back to the default."""
    settings = SamplerSettings()
    for name, value in values.items():
        if name not in SETTINGS:
            continue
        try:
            settings = settings.with_values({name: _restored(name, value)})
        except (TypeError, ValueError, UsageError):
            continue
    return settings


def _restored(name: str, value: object) -> object:
    """A stored value (TOML knows no tuples) in the type of the field."""
    default = getattr(SamplerSettings(), name)
    if name == "logit_bias":
        return tuple((int(token), float(bias)) for token, bias in cast(Any, value))
    if isinstance(default, tuple):
        if isinstance(value, str):
            raise TypeError(name)
        return tuple(str(item) for item in cast(Any, value))
    if name == "seed":
        return None if value is None else int(cast(Any, value))
    return type(default)(value)


@dataclass(frozen=True, slots=True)
class Preset:
    """A named set of values over the defaults."""

    name: str
    description: str
    values: Mapping[str, object]


PRESETS: tuple[Preset, ...] = (
    Preset("Balanced", "The defaults: varied but on topic.", {}),
    Preset(
        "Precise",
        "Careful answers for facts and code.",
        {"temperature": 0.2, "top_p": 0.9, "top_k": 20},
    ),
    Preset(
        "Creative",
        "Freer words for stories and ideas.",
        {"temperature": 1.1, "top_p": 1.0, "top_k": 0, "min_p": 0.05},
    ),
    Preset(
        "Repeatable",
        "Always the likeliest token, the same answer every time.",
        {"temperature": 0.0},
    ),
)
