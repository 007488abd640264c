"""Tells a model's reasoning from its answer by the tags its chat template uses, while it streams.

`reasoning_format` reads the tags out of the template and the prompt, `ReasoningSplitter` applies
them to text that arrives in any pieces. Neither knows tokens, sessions or files.

Where a tag counts. Tags in plain letters (`<think>`, `[THINK]`, …) open reasoning only where no
answer text has come yet, white space aside: an answer that talks *about* `<think>` keeps it. So a
model may think again directly after thinking, but not in the middle of its answer. Tags spelled as
control tokens (`<|channel|>`, `<|START_THINKING|>`, …) do not occur in prose and count everywhere.
A closing tag counts inside reasoning; before any answer text a stray one is dropped (MiniMax M3
says "no thinking" with it). Several blocks of one kind are joined by a blank line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum, auto

from slipstream.engine.events import TextKind, TextPiece
from slipstream.engine.marked_text import MarkedText, merged


class TagEffect(Enum):
    """What a tag in a model's output does; none of them is ever shown."""

    OPEN = auto()  # reasoning begins
    CLOSE = auto()  # reasoning ends, the answer is expected
    ANSWER = auto()  # the answer begins
    END = auto()  # a block ends, a header may follow
    HEADER = auto()  # a header begins: who speaks, to whom, on which channel
    BODY = auto()  # a header ends, and decides what kind of text follows
    TAIL = auto()  # closes the answer, where nothing follows any more
    DROP = auto()  # means nothing here


@dataclass(frozen=True, slots=True)
class ReasoningTag:
    """A tag's text and effect. `anywhere`: it counts in the middle of text too."""

    text: str
    effect: TagEffect
    anywhere: bool = False


@dataclass(frozen=True, slots=True)
class ReasoningFormat:
    """How one family of models marks its reasoning.

    `declared` is False for the default that templates without any tag get. `starts_open`: the
    prompt itself has opened the block. `after_tag`: the prompt ends with some other tag, so white
    space at the start of the output belongs to that and is not shown.
    """

    name: str
    tags: tuple[ReasoningTag, ...]
    starts_open: bool = False
    after_tag: bool = False
    declared: bool = True

    def texts(self, *effects: TagEffect) -> tuple[str, ...]:
        """The texts of the tags with one of these effects."""
        return tuple(tag.text for tag in self.tags if tag.effect in effects)

    @property
    def open_tags(self) -> tuple[str, ...]:
        """The tags that begin reasoning; empty where headers decide."""
        return self.texts(TagEffect.OPEN)

    @property
    def close_tags(self) -> tuple[str, ...]:
        """The tags that end reasoning; empty where headers decide."""
        return self.texts(TagEffect.CLOSE)

    @property
    def visible_control_texts(self) -> frozenset[str]:
        """Texts of control tokens that the detokenizer has to render for the splitter to see.

        All others stay invisible. Longer than any tag here they need not be: a tag that is made
        of several tokens is listed whole and in its parts.
        """
        parts = (part for tag in self.tags for part in _CONTROL_TEXT.findall(tag.text))
        return frozenset((*parts, *(tag.text for tag in self.tags)))


_CONTROL_TEXT = re.compile(r"<[^<>\s]+>|\[[^\[\]\s]+\]|◁[^◁▷\s]+▷")


def _plain(name: str, opening: str, closing: str, *more: ReasoningTag) -> ReasoningFormat:
    tags = (ReasoningTag(opening, TagEffect.OPEN), ReasoningTag(closing, TagEffect.CLOSE))
    return ReasoningFormat(name, tags + more)


def _control(name: str, *tags: tuple[str, TagEffect]) -> ReasoningFormat:
    return ReasoningFormat(name, tuple(ReasoningTag(*tag, anywhere=True) for tag in tags))


def _addressed(name: str, *tags: tuple[str, TagEffect]) -> ReasoningFormat:
    """A format with headers; one that the prompt has begun may go on with ` to=…`."""
    made = _control(name, *tags)
    return replace(made, tags=(*made.tags, ReasoningTag("to=", TagEffect.HEADER)))


THINK = _plain("think", "<think>", "</think>")
DEFAULT = replace(THINK, declared=False)

_GRANITE = _plain(
    "think and response",
    "<think>",
    "</think>",
    ReasoningTag("<response>", TagEffect.ANSWER),
    ReasoningTag("</response>", TagEffect.TAIL),
)
_HUNYUAN = _plain(
    "think and answer",
    "<think>",
    "</think>",
    ReasoningTag("<answer>", TagEffect.ANSWER),
    ReasoningTag("</answer>", TagEffect.TAIL),
)
_MISTRAL = _plain("[THINK]", "[THINK]", "[/THINK]")
_KIMI_VL = _plain("◁think▷", "◁think▷", "◁/think▷")
_APRIEL = _plain(
    "Apriel",
    "Here are my reasoning steps:",
    "[BEGIN FINAL RESPONSE]",
    ReasoningTag("[END FINAL RESPONSE]", TagEffect.TAIL),
)
# https://cookbook.openai.com/articles/openai-harmony
_HARMONY = _addressed(
    "harmony channels",
    ("<|start|>", TagEffect.HEADER),
    ("<|channel|>", TagEffect.HEADER),
    ("<|message|>", TagEffect.BODY),
    ("<|end|>", TagEffect.END),
    ("<|constrain|>", TagEffect.DROP),
)
_MUSE = _addressed(
    "recipients",
    ("<|start|>", TagEffect.HEADER),
    ("<|message|>", TagEffect.BODY),
    ("<|eom|>", TagEffect.END),
)
_SOLAR = _control(
    "Solar",
    ("<|begin|>", TagEffect.HEADER),
    ("<|think|>", TagEffect.OPEN),
    ("<|content|>", TagEffect.ANSWER),
    ("<|end|>", TagEffect.END),
)
_KIMI_K3 = _control(
    "Kimi K3",
    ("<|open|>think<|sep|>", TagEffect.OPEN),
    ("<|close|>think<|sep|>", TagEffect.CLOSE),
    ("<|open|>response<|sep|>", TagEffect.ANSWER),
    ("<|close|>response<|sep|>", TagEffect.DROP),
    ("<|close|>message<|sep|>", TagEffect.DROP),
    ("<|open|>", TagEffect.DROP),
    ("<|close|>", TagEffect.DROP),
    ("<|sep|>", TagEffect.DROP),
)
_GEMMA_4 = _control(
    "Gemma channel",
    ("<|channel>thought", TagEffect.OPEN),
    ("<channel|>", TagEffect.CLOSE),
    ("<|channel>", TagEffect.DROP),
)
_COHERE = _control(
    "Cohere",
    ("<|START_THINKING|>", TagEffect.OPEN),
    ("<|END_THINKING|>", TagEffect.CLOSE),
    ("<|START_RESPONSE|>", TagEffect.ANSWER),
    ("<|END_RESPONSE|>", TagEffect.DROP),
    ("<|START_TEXT|>", TagEffect.ANSWER),
    ("<|END_TEXT|>", TagEffect.DROP),
)
_APERTUS = _control(
    "Apertus",
    ("<|inner_prefix|>", TagEffect.OPEN),
    ("<|inner_suffix|>", TagEffect.CLOSE),
)

# A template that holds all texts of the first column uses the format of the second.
_RECOGNISED: tuple[tuple[tuple[str, ...], ReasoningFormat], ...] = (
    (("<|channel|>", "<|message|>"), _HARMONY),
    (("to=self<|message|>",), _MUSE),
    (("<|begin|>assistant<|think|>",), _SOLAR),
    (("<|open|>", "<|sep|>", "think"), _KIMI_K3),
    (("<|channel>", "<channel|>"), _GEMMA_4),
    (("<|START_THINKING|>", "<|END_THINKING|>"), _COHERE),
    (("<|inner_prefix|>", "<|inner_suffix|>"), _APERTUS),
    (("[BEGIN FINAL RESPONSE]",), _APRIEL),
    (("[THINK]", "[/THINK]"), _MISTRAL),
    (("◁think▷",), _KIMI_VL),
    (("<think></think>", "<response></response>"), _GRANITE),
    (("</think>", "<answer>", "</answer>"), _HUNYUAN),
    (("</think>",), THINK),
)
# <seed:think>, <mm:think>, <longcat_think>, <thinking>, <thought> and what may come.
_CLOSING = re.compile(r"</((?:\w+[:_])?(?:think|thinking|thought)(?::\w+)?)>")
# Tencent's Hy3 spells its tags '<think{}>'.format(suffix).
_SUFFIXED = re.compile(r"</think\{\}>")
_SUFFIX = re.compile(r"\.format\((\w+)\)")


def reasoning_format(template_source: str, rendered_prompt: str) -> ReasoningFormat:
    """The format a template's model uses, and how the prompt leaves it.

    A template that mentions no tag at all gets `<think>` too, with `declared` False: an answer
    that *begins* with it is folded for any model, as people expect of the many models whose
    templates forget to say so.
    """
    made = _declared_format(template_source)
    prompt = rendered_prompt.rstrip()
    ending = made.texts(TagEffect.CLOSE, TagEffect.ANSWER, TagEffect.END, TagEffect.BODY)
    starts_open = prompt.endswith(made.open_tags) if made.open_tags else False
    if TagEffect.BODY in {tag.effect for tag in made.tags}:
        head, body, rest = prompt.rpartition("<|message|>")
        starts_open = bool(body) and not rest and _is_reasoning(head.rpartition("<|start|>")[2])
    return replace(
        made, starts_open=starts_open, after_tag=bool(ending) and prompt.endswith(ending)
    )


def _declared_format(source: str) -> ReasoningFormat:
    for texts, made in _RECOGNISED:
        if all(text in source for text in texts):
            return made
    if found := _CLOSING.search(source):
        name = found[1]
        return _plain(name, f"<{name}>", f"</{name}>")
    if _SUFFIXED.search(source) and (variable := _SUFFIX.search(source)):
        value = re.search(rf"set\s+{variable[1]}\s*=\s*['\"]([^'\"]*)['\"]", source)
        suffix = value[1] if value else ""
        return _plain(f"think{suffix}", f"<think{suffix}>", f"</think{suffix}>")
    return DEFAULT


def _is_reasoning(header: str) -> bool:
    """Whether the body after this header is for the model itself.

    gpt-oss thinks on the channel `analysis` and calls tools on `commentary` with a recipient;
    `commentary` without one is a preamble meant for the reader. Muse thinks `to=self`.
    """
    recipient = re.search(r"to=(\S+?)(?=<|\s|$)", header)
    return "analysis" in header or (recipient is not None and recipient[1] != "user")


class _Mode(Enum):
    BEFORE = auto()  # nothing of the coming block yet
    HEADER = auto()
    REASONING = auto()
    ANSWER = auto()


_LONGEST_HEADER = 200  # characters; what is longer was no header and is shown
_TEXT_MODES = {_Mode.REASONING: TextKind.REASONING, _Mode.ANSWER: TextKind.ANSWER}


class ReasoningSplitter:
    """Splits one answer, fed in any pieces, into reasoning and answer.

    The joined result does not depend on where the text was cut. No half tag is ever given out
    before `finish`; text that only resembles one is given out as soon as that is clear. Besides
    tags and headers only white space next to a tag is taken away; a header that never turns into
    one (200 characters) is given back as answer text.
    """

    def __init__(self, reasoning: ReasoningFormat = DEFAULT) -> None:
        self._tags = reasoning.tags
        self._fresh = True  # no text of this block yet
        self._enter(_Mode.REASONING if reasoning.starts_open else _Mode.BEFORE)
        self._buffer = MarkedText()
        self._space = MarkedText()  # white space, or a tail tag, that may yet stand at a border
        self._tail_held = False
        self._trim = reasoning.starts_open or reasoning.after_tag  # white space here is a tag's
        self._header = MarkedText()
        self._spelled_header = False  # the header began with letters, not with a control token
        self._seen: set[TextKind] = set()
        self._pieces: list[TextPiece] = []

    @property
    def reasoning(self) -> bool:
        """Whether what was fed last belongs to the reasoning."""
        return self._mode is _Mode.REASONING

    def feed(self, text: str, accepted: bytes = b"") -> tuple[TextPiece, ...]:
        """The pieces that became certain with this text.

        `accepted` has 1 for each character that was drafted, else 0; left out, none was.
        """
        self._buffer += MarkedText(text, accepted or bytes(len(text)))
        self._advance(final=False)
        return self._collected()

    def finish(self) -> tuple[TextPiece, ...]:
        """What was held back. An unfinished tag turns out to be text; call once, at the end."""
        self._advance(final=True)
        if self._mode is _Mode.HEADER and self._spelled_header:
            self._release_header()
        if not self._tail_held and not (self._trim and self._fresh) and self._space.text:
            kind = TextKind.REASONING if self._mode is _Mode.REASONING else TextKind.ANSWER
            self._pieces += self._space.pieces(kind)
        self._space = MarkedText()
        return self._collected()

    def _collected(self) -> tuple[TextPiece, ...]:
        """The pieces so far, joined where they can be."""
        joined = merged(self._pieces)
        self._pieces = []
        return joined

    def _active_tags(self) -> tuple[ReasoningTag, ...]:
        """The tags that count at this point."""
        if self._mode is _Mode.ANSWER:
            chosen = [tag for tag in self._tags if tag.anywhere or tag.effect is TagEffect.TAIL]
        elif self._mode is _Mode.REASONING:
            wanted = {TagEffect.CLOSE}
            if self._fresh:
                wanted.add(TagEffect.OPEN)  # R1 repeats the tag the prompt has opened
            chosen = [tag for tag in self._tags if tag.anywhere or tag.effect in wanted]
        elif self._mode is _Mode.HEADER:
            chosen = [tag for tag in self._tags if tag.anywhere]
        else:
            chosen = [tag for tag in self._tags if tag.effect is not TagEffect.TAIL]
        return tuple(sorted(chosen, key=lambda tag: -len(tag.text)))

    def _enter(self, mode: _Mode) -> None:
        self._mode = mode
        self._active = self._active_tags()

    def _advance(self, final: bool) -> None:
        buffer, at = self._buffer.text, 0
        while at < len(buffer):
            if not self._active and self._mode is _Mode.ANSWER:
                self._text(self._buffer[at:])
                at = len(buffer)
                break
            if self._is_plain(buffer, at):
                self._plain_text(self._buffer[at:])
                at = len(buffer)
                break
            complete: ReasoningTag | None = None
            waiting = False
            for tag in self._active:  # longest first
                if buffer.startswith(tag.text, at):
                    complete = tag
                    break
                if not final and len(buffer) - at < len(tag.text):
                    waiting = waiting or tag.text.startswith(buffer[at:])
            if waiting:
                break
            if complete is not None:
                end = at + len(complete.text)
                self._apply(complete, self._buffer[at:end])
                at = end
            else:
                self._character(self._buffer[at : at + 1])
                at += 1
        self._buffer = self._buffer[at:]

    def _is_plain(self, text: str, start: int) -> bool:
        """Whether the rest goes on with the block's text and no tag can begin in it."""
        if self._fresh or self._mode not in _TEXT_MODES:
            return False
        return not any(text.find(tag.text[0], start) >= 0 for tag in self._active)

    def _plain_text(self, text: MarkedText) -> None:
        """The same as by characters: white space waits for what comes after it."""
        end = len(text.text.rstrip())
        if end:
            self._text(text[:end])
        self._space += text[end:]

    def _character(self, character: MarkedText) -> None:
        if self._mode is _Mode.HEADER:
            self._header += character
            if len(self._header.text) > _LONGEST_HEADER:
                self._release_header()
        elif character.text.isspace():
            self._space += character
        else:
            if self._mode is _Mode.BEFORE:
                self._enter(_Mode.ANSWER)
            self._text(character)

    def _text(self, text: MarkedText) -> None:
        kind = _TEXT_MODES[self._mode]
        space = MarkedText() if self._fresh and self._trim else self._space
        if self._fresh and kind in self._seen:
            space = MarkedText("\n\n", bytes(2))
        self._space, self._tail_held = MarkedText(), False
        if self._fresh:
            self._fresh = False
            self._active = self._active_tags()
        self._seen.add(kind)
        self._pieces += (space + text).pieces(kind)

    def _release_header(self) -> None:
        header = self._header
        if not self._spelled_header:
            header = header[len(header.text) - len(header.text.lstrip()) :]
        self._header = MarkedText()
        self._enter(_Mode.ANSWER)
        if header.text:
            self._text(header)

    def _apply(self, tag: ReasoningTag, spelled: MarkedText) -> None:
        effect = tag.effect
        if effect is TagEffect.TAIL:
            self._space += spelled
            self._tail_held = True
            return
        if effect is TagEffect.DROP or (
            effect is TagEffect.BODY and self._mode in (_Mode.REASONING, _Mode.ANSWER)
        ):
            return
        if effect is TagEffect.CLOSE and self._mode is _Mode.ANSWER:
            return
        if effect is TagEffect.OPEN and self._mode is _Mode.REASONING:
            return
        space, self._space, self._tail_held = self._space, MarkedText(), False
        if effect is TagEffect.HEADER:
            if self._mode is not _Mode.HEADER:
                self._spelled_header = not tag.anywhere
                kept = self._spelled_header and not self._trim
                self._header = space if kept else MarkedText()
            self._trim = True
            self._header += MarkedText(" ", bytes(1)) if tag.anywhere else spelled
            self._enter(_Mode.HEADER)
            return
        self._trim = self._fresh = True
        if effect is TagEffect.OPEN:
            self._enter(_Mode.REASONING)
        elif effect is TagEffect.BODY:
            self._enter(_Mode.REASONING if _is_reasoning(self._header.text) else _Mode.ANSWER)
        else:
            self._enter(_Mode.BEFORE)
        self._header = MarkedText()
