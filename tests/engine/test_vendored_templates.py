"""Every chat template that llama.cpp ships renders every conversation, or says what it changed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from slipstream.chat.records import Role
from slipstream.engine.chat_template import ChatTemplate, RenderedPrompt, Turn, choose_template

FOLDER = Path(__file__).resolve().parents[2] / ".cache" / "llama.cpp" / "templates"
SYSTEM = Turn(Role.SYSTEM, "Answer like a pirate 4711.")
FIRST = Turn(Role.USER, "What is the first question 815?")
ANSWER = Turn(Role.ASSISTANT, "An earlier answer 4242.", "an earlier thought 99")
SECOND = Turn(Role.USER, "And what is the second one 1234?")
STOPPED = Turn(Role.ASSISTANT, "")

NO_SYSTEM_ROLE = {"google-gemma-2-2b-it"}
USER_FIRST = NO_SYSTEM_ROLE | {
    "Mistral-Small-3.2-24B-Instruct-2506",
    "mistralai-Ministral-3-14B-Reasoning-2512",
    "mistralai-Mistral-Nemo-Instruct-2407",
}

SYSTEM_LAST = {"mistralai-Mistral-Nemo-Instruct-2407"}  # writes it into the last user turn itself

# Template: name of its format, whether the plain prompt opens the reasoning. Written by hand from
# the templates; those not listed mention no tag.
REASONING = {
    "Apertus-8B-Instruct": ("Apertus", False),
    "Apriel-1.6-15b-Thinker-fixed": ("Apriel", True),
    "Bielik-11B-v3.0-Instruct": ("think", False),
    "ByteDance-Seed-OSS": ("seed:think", False),
    "Cohere2MoE": ("Cohere", True),
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": ("Cohere", False),
    "GLM-4.6": ("think", False),
    "GLM-4.7-Flash": ("think", True),
    "HuggingFaceTB-SmolLM3-3B": ("think", False),
    "Kimi-K2-Thinking": ("think", False),
    "Kimi-K3": ("Kimi K3", True),
    "LFM2.5-8B-A1B": ("think", False),
    "LFM2.5-Instruct": ("think", False),
    "MiniMax-M2": ("think", True),
    "MiniMax-M3": ("mm:think", False),
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": ("think", True),
    "NVIDIA-Nemotron-Nano-v2": ("think", True),
    "Qwen-QwQ-32B": ("think", False),
    "Qwen-Qwen3-0.6B": ("think", False),
    "Qwen3.5-4B": ("think", True),
    "Reka-Edge": ("think", False),
    "Spark2.5": ("think", True),
    "StepFun3.5-Flash": ("think", True),
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": ("think", True),
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": ("think", False),
    "deepseek-ai-DeepSeek-V3.1": ("think", False),
    "deepseek-ai-DeepSeek-V3.2": ("think", False),
    "deepseek-ai-DeepSeek-V4": ("think", False),
    "deepseek-ai-DeepSeek-V4-Flash-0731": ("think", False),
    "google-gemma-4-31B-it": ("Gemma channel", False),
    "google-gemma-4-31B-it-interleaved": ("Gemma channel", False),
    "ibm-granite-granite-3.3-2B-Instruct": ("think and response", False),
    "inclusionai-ling-3.0-flash": ("think", True),
    "llama-cpp-deepseek-r1": ("think", True),
    "llama-cpp-rwkv-world": ("think", False),
    "mistralai-Ministral-3-14B-Reasoning-2512": ("[THINK]", False),
    "muse-glimmer": ("recipients", False),
    "openai-gpt-oss-120b": ("harmony channels", False),
    "openbmb-MiniCPM5-1B": ("think", False),
    "poolside-Laguna-S-2.1": ("think", True),
    "poolside-Laguna-XS-2.1": ("think", False),
    "poolside-Laguna-XS.2": ("think", False),
    "tencent-Hy3": ("think:opensource", False),
    "unsloth-Apriel-1.5": ("Apriel", False),
    "upstage-Solar-Open-100B": ("Solar", False),
}

# Template, variables, whether the prompt opens the reasoning then.
SWITCHED = [
    ("Qwen-QwQ-32B", {"enable_thinking": True}, True),
    ("Qwen-Qwen3-0.6B", {"enable_thinking": False}, False),
    ("Qwen3.5-4B", {"enable_thinking": False}, False),
    ("deepseek-ai-DeepSeek-V3.1", {"thinking": True}, True),
    ("deepseek-ai-DeepSeek-V4", {"thinking": True}, True),
    ("GLM-4.7-Flash", {"enable_thinking": False}, False),
    ("Reka-Edge", {"enable_thinking": True}, True),
    ("Kimi-K3", {"thinking": False}, False),
    ("MiniMax-M3", {"thinking_mode": "enabled"}, True),
    ("MiniMax-M3", {"thinking_mode": "disabled"}, False),
    ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", {"enable_thinking": False}, False),
    ("Spark2.5", {"enable_thinking": False}, False),
    ("Cohere2MoE", {"reasoning": False}, False),
    ("ByteDance-Seed-OSS", {"thinking_budget": 0}, False),
    ("google-gemma-4-31B-it", {"enable_thinking": True}, False),
    ("openbmb-MiniCPM5-1B", {"enable_thinking": True}, True),
    ("poolside-Laguna-XS.2", {"enable_thinking": True}, True),
    ("tencent-Hy3", {"reasoning_effort": "high"}, True),
    ("upstage-Solar-Open-100B", {"reasoning_effort": "low"}, False),
]

VARIABLES = {
    "Qwen-Qwen3-0.6B": {"enable_thinking": ("switch", ())},
    "openai-gpt-oss-120b": {
        "model_identity": ("text", ()),
        "reasoning_effort": ("choice", ("low", "medium", "high")),
    },
    "deepseek-ai-DeepSeek-V3.1": {"thinking": ("switch", ()), "enable_thinking": ("switch", ())},
    "ibm-granite-granite-3.3-2B-Instruct": {"thinking": ("switch", ())},
    "Kimi-K3": {"thinking": ("switch", ()), "thinking_effort": ("choice", ("low", "high", "max"))},
    "MiniMax-M3": {
        "thinking_mode": ("choice", ("enabled", "disabled", "adaptive")),
        "model_identity": ("text", ()),
    },
    "google-gemma-4-31B-it": {"enable_thinking": ("switch", ())},
    "Qwen-Qwen2.5-7B-Instruct": {},
    "Qwen3-Coder": {},
    "microsoft-Phi-3.5-mini-instruct": {},
}


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.jinja"))


@cache
def template(name: str) -> ChatTemplate:
    path = FOLDER / f"{name}.jinja"
    assert path.is_file(), f"{path} is missing: `make test` takes it from llama.cpp's sources."
    return ChatTemplate(
        path.read_text(encoding="utf-8"), name=name, bos_token="<s>", eos_token="</s>"
    )


def render(name: str, *turns: Turn, **variables: object) -> RenderedPrompt:
    return template(name).render(turns, variables=variables)


def in_order(text: str, *turns: Turn) -> bool:
    """Whether every turn's text is there exactly once, in this order."""
    places = [text.find(turn.text) for turn in turns]
    return places == sorted(places) and all(text.count(turn.text) == 1 for turn in turns)


each_template = pytest.mark.parametrize("name", names())


def test_the_templates_are_there() -> None:
    assert len(names()) >= 70, (
        f"{FOLDER} should hold llama.cpp's templates; `make test` puts them there."
    )


@each_template
def test_a_single_turn(name: str) -> None:
    prompt = render(name, FIRST)
    assert in_order(prompt.text, FIRST)
    assert prompt.notes == ()


@each_template
def test_a_single_turn_with_a_system_prompt(name: str) -> None:
    prompt = render(name, SYSTEM, FIRST)
    assert in_order(prompt.text, SYSTEM, FIRST)
    assert bool(prompt.notes) == (name in NO_SYSTEM_ROLE)


@each_template
def test_several_turns(name: str) -> None:
    prompt = render(name, FIRST, ANSWER, SECOND)
    assert in_order(prompt.text, FIRST, ANSWER, SECOND)
    assert prompt.notes == ()


@each_template
def test_several_turns_with_a_system_prompt(name: str) -> None:
    prompt = render(name, SYSTEM, FIRST, ANSWER, SECOND)
    turns = (
        (FIRST, ANSWER, SYSTEM, SECOND) if name in SYSTEM_LAST else (SYSTEM, FIRST, ANSWER, SECOND)
    )
    assert in_order(prompt.text, *turns)
    assert bool(prompt.notes) == (name in NO_SYSTEM_ROLE)


@each_template
def test_after_a_stopped_empty_answer(name: str) -> None:
    prompt = render(name, FIRST, STOPPED, SECOND)
    assert in_order(prompt.text, FIRST, SECOND)
    assert len(prompt.notes) == 2
    assert render(name, FIRST, STOPPED).text == render(name, FIRST).text


@each_template
def test_a_leading_answer(name: str) -> None:
    prompt = render(name, ANSWER, SECOND)
    assert in_order(prompt.text, ANSWER, SECOND)
    assert bool(prompt.notes) == (name in USER_FIRST)


@each_template
def test_a_later_system_message(name: str) -> None:
    assert in_order(render(name, FIRST, ANSWER, SYSTEM, SECOND).text, FIRST, ANSWER, SECOND)
    assert SYSTEM.text in render(name, FIRST, ANSWER, SYSTEM, SECOND).text


@each_template
def test_the_reasoning_is_recognised(name: str) -> None:
    made = render(name, FIRST).reasoning
    assert (made.declared, made.name, made.starts_open) == (
        (True, *REASONING[name]) if name in REASONING else (False, "think", False)
    )


@pytest.mark.parametrize(("name", "variables", "opened"), SWITCHED)
def test_variables_open_and_close_the_reasoning(
    name: str, variables: dict[str, object], opened: bool
) -> None:
    assert render(name, FIRST, **variables).reasoning.starts_open == opened


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_the_variables_are_found(name: str) -> None:
    found = {made.name: (made.kind.value, made.choices) for made in template(name).variables}
    assert found == VARIABLES[name]


@each_template
def test_the_models_own_template_is_used(name: str) -> None:
    assert choose_template(template(name).source).notes == ()
