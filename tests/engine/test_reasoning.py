"""Reasoning apart from the answer: every family's tags, wherever the text is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipstream.engine.events import TextKind
from slipstream.engine.reasoning import (
    DEFAULT,
    THINK,
    ReasoningFormat,
    ReasoningSplitter,
    reasoning_format,
)

# One line per family: enough of a template for it to be recognised, and the end of its prompt.
FAMILIES = {
    "think": ("{{ '<think>' }}{{ '</think>' }}", "<|im_start|>assistant\n"),
    "none": ("{{ messages }}", "assistant:"),
    "mistral": ("[THINK] [/THINK]", "[/INST]"),
    "harmony": ("<|channel|>analysis<|message|>", "<|start|>assistant"),
    "muse": ("to=self<|message|>", "<|start|>assistant"),
    "seed": ("{{ '<seed:think>' }}{{ '</seed:think>' }}", "assistant\n"),
    "gemma": ("<|channel>thought\n<channel|>", "<|turn>model\n"),
    "cohere": ("<|START_THINKING|><|END_THINKING|>", "<|CHATBOT_TOKEN|>"),
    "kimi": ("<|open|> think <|sep|>", "<|open|>think<|sep|>"),
    "apriel": ("[BEGIN FINAL RESPONSE]", "<|begin_assistant|>\nHere are my reasoning steps:\n"),
    "solar": ("<|begin|>assistant<|think|>", "<|begin|>assistant"),
    "granite": ("<think></think> <response></response>", "assistant"),
    "minimax": ("{{ '</mm:think>' }}", "]~b]ai\n"),
    "apertus": ("<|inner_prefix|><|inner_suffix|>", "<|assistant_start|>"),
}


def family(name: str) -> ReasoningFormat:
    return reasoning_format(*FAMILIES[name])


def split(text: str, made: ReasoningFormat, cuts: tuple[int, ...] = ()) -> tuple[str, str]:
    """(reasoning, answer) of a text fed in the pieces between `cuts`."""
    splitter = ReasoningSplitter(made)
    borders = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    pieces = [piece for start, end in pairwise(borders) for piece in splitter.feed(text[start:end])]
    pieces += splitter.finish()
    assert all(piece.text for piece in pieces)

    def joined(kind: TextKind) -> str:
        return "".join(piece.text for piece in pieces if piece.kind is kind)

    return joined(TextKind.REASONING), joined(TextKind.ANSWER)


@pytest.mark.parametrize(
    ("name", "output", "reasoning", "answer"),
    [
        ("think", "<think>\nwhy\n</think>\n\nyes", "why", "yes"),
        ("think", "\n<think>why</think>yes", "why", "yes"),
        ("think", "plain <b>answer</b>", "", "plain <b>answer</b>"),
        ("think", "  indented", "", "  indented"),
        ("think", "Write <think> then </think>.", "", "Write <think> then </think>."),
        ("think", "</think>\n\nno thought", "", "no thought"),
        ("think", "<think>\n\n</think>\n\nyes", "", "yes"),
        ("think", "<think>a</think>\n<think>b</think>\nyes", "a\n\nb", "yes"),
        ("think", "<think>a</think>yes <think>b</think>", "a", "yes <think>b</think>"),
        ("think", "<think>never  \n closed \n", "never  \n closed \n", ""),
        ("think", "<think>say <think> twice</think>x", "say <think> twice", "x"),
        ("think", "<thin", "", "<thin"),
        ("think", "<think>a</thi", "a</thi", ""),
        ("think", "", "", ""),
        ("think", " \n", "", " \n"),
        ("none", "<think>why</think>yes", "why", "yes"),
        ("mistral", "[THINK]why[/THINK]\nyes [THINK]", "why", "yes [THINK]"),
        ("mistral", "[TH] x", "", "[TH] x"),
        (
            "harmony",
            "<|channel|>analysis<|message|>why<|end|><|start|>assistant"
            "<|channel|>final<|message|>yes",
            "why",
            "yes",
        ),
        (
            "harmony",
            "<|channel|>analysis<|message|>one<|end|><|start|>assistant<|channel|>commentary"
            "<|message|>First I look.<|end|><|start|>assistant<|channel|>analysis<|message|>two"
            "<|end|><|start|>assistant<|channel|>final<|message|>Done.",
            "one\n\ntwo",
            "First I look.\n\nDone.",
        ),
        (
            "harmony",
            " to=functions.f<|channel|>commentary <|constrain|>json<|message|>{}",
            "{}",
            "",
        ),
        ("harmony", "A fine-tune that forgot channels.", "", "A fine-tune that forgot channels."),
        ("harmony", "<|channel|>ana", "", ""),
        ("harmony", " to be", "", " to be"),
        ("harmony", " to=" + "x" * 300, "", " to=" + "x" * 300),
        ("harmony", " to=me", "", " to=me"),
        ("harmony", "<|channel|>final<|message|>to=5 is fine", "", "to=5 is fine"),
        ("harmony", "<|channel|>" + "x" * 300, "", "x" * 300),
        (
            "muse",
            " to=self<|message|>why<|eom|><|start|>assistant to=user<|message|>yes",
            "why",
            "yes",
        ),
        ("seed", "<seed:think>why</seed:think>yes", "why", "yes"),
        ("gemma", "<|channel>thought\nwhy\n<channel|>yes", "why", "yes"),
        (
            "cohere",
            "<|START_THINKING|>why<|END_THINKING|><|START_RESPONSE|>yes<|END_RESPONSE|>",
            "why",
            "yes",
        ),
        ("cohere", "<|START_THINKING|>w<|END_THINKING|><|START_TEXT|>y<|END_TEXT|>", "w", "y"),
        (
            "kimi",
            "why<|close|>think<|sep|><|open|>response<|sep|>yes<|close|>response<|sep|>"
            "<|close|>message<|sep|>",
            "why",
            "yes",
        ),
        ("apriel", "why\n[BEGIN FINAL RESPONSE]\nyes\n[END FINAL RESPONSE]\n", "why", "yes"),
        (
            "apriel",
            "why[BEGIN FINAL RESPONSE]say [END FINAL RESPONSE] last",
            "why",
            "say [END FINAL RESPONSE] last",
        ),
        (
            "solar",
            "<|think|>why<|end|><|begin|>assistant<|content|>yes<|end|>",
            "why",
            "yes",
        ),
        ("granite", "<think>w</think>\n<response>y</response>", "w", "y"),
        ("granite", "<response>a</response> b", "", "a</response> b"),
        ("minimax", "</mm:think>yes", "", "yes"),
        ("minimax", "<mm:think>why</mm:think>yes", "why", "yes"),
        ("apertus", "<|inner_prefix|>why<|inner_suffix|>yes", "why", "yes"),
    ],
)
def test_every_family_is_split_at_its_tags_however_it_arrives(
    name: str, output: str, reasoning: str, answer: str
) -> None:
    made = family(name)
    assert split(output, made) == (reasoning, answer)
    assert split(output, made, tuple(range(len(output)))) == (reasoning, answer)


def test_a_block_the_prompt_opened_starts_in_reasoning() -> None:
    made = reasoning_format("<think></think>", "<|im_start|>assistant\n<think>\n")
    assert made.starts_open
    assert split("why\n</think>\n\nyes", made) == ("why", "yes")
    assert split("<think>\nwhy</think>yes", made) == ("why", "yes")  # R1 repeats the tag


def test_an_empty_block_in_the_prompt_starts_in_the_answer() -> None:
    made = reasoning_format("<think></think>", "assistant\n<think>\n\n</think>\n\n")
    assert not made.starts_open
    assert split("\n\nyes", made) == ("", "yes")


def test_a_harmony_prompt_may_have_begun_the_analysis() -> None:
    source = FAMILIES["harmony"][0]
    assert reasoning_format(source, "<|start|>assistant<|channel|>analysis<|message|>").starts_open
    assert not reasoning_format(source, "<|start|>assistant<|channel|>final<|message|>").starts_open


def test_templates_without_tags_get_the_default() -> None:
    made = reasoning_format("{{ messages }}", "x")
    assert made == DEFAULT
    assert not made.declared
    assert THINK.declared


def test_text_that_cannot_become_a_tag_is_released_at_once() -> None:
    splitter = ReasoningSplitter(THINK)
    assert splitter.feed("<thi") == ()
    (piece,) = splitter.feed("s")
    assert piece.text == "<this"
    (piece,) = splitter.feed(" <think")
    assert piece.text == " <think"  # in the middle of an answer it is no tag


def test_white_space_in_an_answer_is_not_held_back() -> None:
    splitter = ReasoningSplitter(THINK)
    splitter.feed("a")
    (piece,) = splitter.feed("\n\n")
    assert piece.text == "\n\n"


def test_control_texts_are_named_whole_and_in_parts() -> None:
    assert family("kimi").visible_control_texts >= {"<|open|>", "<|sep|>", "<|close|>"}
    assert family("harmony").visible_control_texts >= {"<|channel|>", "<|message|>", "<|end|>"}
    assert family("gemma").visible_control_texts >= {"<|channel>", "<channel|>"}
    assert family("mistral").visible_control_texts == {"[THINK]", "[/THINK]"}
    assert family("think").visible_control_texts == {"<think>", "</think>"}


_ALPHABET = {
    name: [*(tag.text for tag in family(name).tags), "a", "b ", " ", "\n", "<", "[", "analysis"]
    for name in FAMILIES
}
_OUTPUTS = st.sampled_from(sorted(FAMILIES)).flatmap(
    lambda name: st.tuples(
        st.just(name), st.lists(st.sampled_from(_ALPHABET[name]), max_size=12).map("".join)
    )
)


@given(_OUTPUTS, st.lists(st.integers(0, 400), max_size=12))
def test_the_result_does_not_depend_on_the_cuts(output: tuple[str, str], cuts: list[int]) -> None:
    name, text = output
    made = family(name)
    assert split(text, made, tuple(cuts)) == split(text, made)


@given(st.text(), st.text())
def test_nothing_but_tags_and_white_space_is_lost(thought: str, answer: str) -> None:
    for tag in ("<think>", "</think>"):
        thought, answer = thought.replace(tag, ""), answer.replace(tag, "")
    got = split(f"<think>{thought}</think>{answer}", THINK)
    assert got == (thought.strip(), answer.lstrip() if answer.strip() else "")


@given(st.text(alphabet="abc <>/\n\t[]|thinkTHINK"))
def test_text_without_tags_passes_unchanged(text: str) -> None:
    if not text.lstrip().startswith(("<think>", "</think>")):
        assert split(text, DEFAULT) == ("", text)
