"""Turns a conversation into the prompt text a model was trained on, by its Jinja chat template.

Owns the choice of the template, the rules for conversations a template does not accept, and the
words in which both are told. It knows neither tokens nor sessions.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NoReturn

import jinja2
from jinja2.exceptions import SecurityError

from slipstream.chat.records import Role
from slipstream.engine.builtin_templates import BuiltinTemplate, builtin_template, guess_builtin
from slipstream.engine.reasoning import ReasoningFormat, reasoning_format
from slipstream.engine.template_error import TemplateError
from slipstream.engine.template_sandbox import (
    FILE_NAME,
    BudgetExceeded,
    RenderLimits,
    TemplateEnvironment,
    TemplateRejection,
)
from slipstream.engine.template_variables import TemplateVariable, check_names, template_variables
from slipstream.errors import ContextSizeError

_LONGEST_SOURCE = 1_000_000  # characters
_LONGEST_PROMPT = 16_000_000  # characters
_LONGEST_CONVERSATION = 3_500_000  # characters; the sandbox stops at values of 4 million
_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking", "thought")

_NOTE_EMPTY = "An empty answer was left out of the prompt."
_NOTE_MERGED = "Neighbouring messages of the same role were joined into one."
_NOTE_FOLDED = (
    "This model's template has no system role: the system prompt stands at the head of the"
    " first message instead."
)
_NOTE_SYSTEM_LATER = (
    "This model's template takes no system message there: it stands at the head of the next"
    " message instead."
)
_NOTE_OPENED = (
    "This model's template wants the user to speak first: an empty message was put before the"
    " first answer."
)
_NOTE_CUT = (
    "This model's template wants the user to speak first: the answers before the first message"
    " were left out of the prompt."
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One message as a template sees it. `reasoning` is an assistant's only."""

    role: Role
    text: str
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """The exact text the model sees, what was changed to get it, and how its answer will look."""

    text: str
    notes: tuple[str, ...]
    reasoning: ReasoningFormat


@dataclass(frozen=True, slots=True)
class _Variant:
    """A way to put the conversation to the template, with the notes it costs."""

    turns: tuple[Turn, ...]
    notes: tuple[str, ...]


class ChatTemplate:
    """A compiled chat template with a name for people. Does not change; safe to share.

    `source` is Jinja; `name` says where it comes from ("the model file's own template", a file
    name, "ChatML (built in)"); `notes` what there is to say about the choice. Raises
    `TemplateError` with line and column for a source that is not Jinja.
    """

    def __init__(
        self,
        source: str,
        *,
        name: str,
        bos_token: str = "",
        eos_token: str = "",
        notes: tuple[str, ...] = (),
        clock: Callable[[], datetime] = datetime.now,
        limits: RenderLimits | None = None,
    ) -> None:
        self.source = source
        self.name = name
        self.bos_token = bos_token
        self.eos_token = eos_token
        self.notes = notes
        self._clock = clock
        self._lock = threading.Lock()  # the environment counts one render at a time
        self._accepts_system: dict[str, bool] = {}
        self._reasoning_keys = tuple(key for key in _REASONING_KEYS if _reads_key(source, key))
        self._environment = TemplateEnvironment(limits, clock)
        if len(source) > _LONGEST_SOURCE:
            raise TemplateError(
                "The chat template is too long.",
                f"{name}: {len(source):,} characters; {_LONGEST_SOURCE:,} are allowed.",
                _HINT,
            )
        try:
            self._template = self._environment.compiled(source)
        except jinja2.TemplateSyntaxError as error:
            self._raise_syntax_error(error)
        except (RecursionError, SyntaxError, ValueError, OverflowError, MemoryError) as error:
            # Jinja writes Python, which has limits of its own ("too many statically nested blocks")
            raise TemplateError(
                "The chat template cannot be compiled.", f"{name}: {error}.", _HINT
            ) from error

    @property
    def variables(self) -> tuple[TemplateVariable, ...]:
        """What can be set besides the messages, in order of first use."""
        return template_variables(self.source)

    def render(
        self,
        messages: Sequence[Turn],
        *,
        add_generation_prompt: bool = True,
        variables: Mapping[str, object] | None = None,
    ) -> RenderedPrompt:
        """The prompt for a conversation whose system prompt, if any, is its first turn.

        Empty answers are left out and neighbours of one role joined, always, so that the prompt of
        a later turn begins like that of an earlier one. What the template then still refuses is
        put to it in other words: system text folded into the first user turn, an empty user
        turn before a leading answer, that answer left out. Each change has its note. Reasoning of
        earlier turns goes along only to templates that read it.

        Raises `TemplateError` when the template fails or refuses every variant, when it goes
        over its limits, `UsageError` for a variable that cannot be set, and `ContextSizeError` for
        millions of characters.
        """
        given = dict(variables or {})
        check_names(given)
        if not messages:
            raise TemplateError("There is no message to answer.")
        length = sum(len(turn.text) for turn in messages)
        if length > _LONGEST_CONVERSATION:  # not the template's fault: its limits are for templates
            raise ContextSizeError(
                "The conversation is longer than any context window.",
                f"It has {length:,} characters.",
                "Start a new chat, or shorten the message.",
            )
        first_error: TemplateError | None = None
        for variant in self._variants(tuple(messages), given):
            try:
                text = self._render(variant.turns, add_generation_prompt, given)
            except _Refused as error:
                first_error = first_error or error.error
                continue
            if any(
                turn.role is Role.SYSTEM and turn.text.strip() not in text
                for turn in variant.turns[1:]
            ):
                continue  # dropped without a word: the next variant has it elsewhere
            return RenderedPrompt(
                text, variant.notes, reasoning_format(self.source, _tail(text, variant.turns))
            )
        raise first_error or TemplateError(
            "The chat template leaves out a system message.",
            self.name,
            "Try another chat template, or put it into the first message.",
        )

    def _variants(
        self, messages: tuple[Turn, ...], variables: Mapping[str, object]
    ) -> Iterator[_Variant]:
        """The conversation in the order of what changes least."""
        kept = tuple(turn for turn in messages if not _is_empty_answer(turn))
        notes = () if len(kept) == len(messages) else (_NOTE_EMPTY,)
        kept = tuple(
            turn for turn in kept if turn.role is not Role.SYSTEM or turn.text.strip()
        ) or (Turn(Role.USER, ""),)
        leading_system = kept[0].role is Role.SYSTEM
        if not leading_system or self._takes_system(variables):
            yield from _openings(_merged(kept, notes))
        if any(turn.role is Role.SYSTEM for turn in kept):
            said = [_NOTE_FOLDED] if leading_system else []
            if any(turn.role is Role.SYSTEM for turn in kept[1:]):
                said.append(_NOTE_SYSTEM_LATER)
                if leading_system and self._takes_system(variables):
                    folded = (kept[0], *_folded(kept[1:]))
                    yield from _openings(_merged(folded, (*notes, _NOTE_SYSTEM_LATER)))
            yield from _openings(_merged(_folded(kept), (*notes, *said)))

    def _takes_system(self, variables: Mapping[str, object]) -> bool:
        """Whether a leading system turn is accepted and really written; asked once."""
        key = repr(sorted(variables.items()))
        if key not in self._accepts_system:
            system, user = "systemprobe7391", "userprobe7391"
            turns = (Turn(Role.SYSTEM, system), Turn(Role.USER, user))
            try:
                self._accepts_system[key] = system in self._render(turns, True, variables)
            except _Refused:
                self._accepts_system[key] = False
            except TemplateError:
                self._accepts_system[key] = True  # broken otherwise: let the real render say so
        return self._accepts_system[key]

    def _message(self, turn: Turn) -> dict[str, object]:
        message: dict[str, object] = {"role": turn.role.value, "content": turn.text}
        if turn.reasoning:
            message.update(dict.fromkeys(self._reasoning_keys, turn.reasoning))
        return message

    def _render(
        self,
        turns: tuple[Turn, ...],
        add_generation_prompt: bool,
        variables: Mapping[str, object],
    ) -> str:
        """The template's own output. Raises `_Refused` or `TemplateError`."""
        context: dict[str, object] = {
            **variables,
            "messages": [self._message(turn) for turn in turns],
            "add_generation_prompt": add_generation_prompt,
            "bos_token": self.bos_token,
            "eos_token": self.eos_token,
        }
        if "datetime" in self.source:  # FireFunction wants it and `functions` as finished texts
            context.setdefault("datetime", self._clock().strftime("%b %d %Y %H:%M:%S GMT"))
            context.setdefault("functions", "")
        try:
            with self._lock:
                self._environment.budget.restart()
                parts: list[str] = []
                length = 0
                for part in self._template.generate(context):
                    parts.append(part)
                    length += len(part)
                    if length > _LONGEST_PROMPT:
                        raise BudgetExceeded(f"more than {_LONGEST_PROMPT:,} characters")
                return "".join(parts)
        except TemplateRejection as error:
            raise _Refused(
                self._runtime_error(
                    "The chat template does not accept this conversation.", error, str(error)
                )
            ) from error
        except BudgetExceeded as error:
            raise self._runtime_error(
                "The chat template does not come to an end.", error, f"stopped, {error}"
            ) from error
        except SecurityError as error:
            raise self._runtime_error(
                "The chat template tried something it must not do.", error, str(error)
            ) from error
        except RecursionError as error:
            raise self._runtime_error(
                "The chat template does not come to an end.", error, "it calls itself too deeply"
            ) from error
        except Exception as error:
            # Templates are programs: besides Jinja's errors any of Python's can come out. A
            # template that trips over one conversation may well take it in other words.
            raise _Refused(
                self._runtime_error("The chat template failed.", error, str(error))
            ) from error

    def _runtime_error(self, title: str, error: BaseException, reason: str) -> TemplateError:
        line = _line_of(error)
        column = _column(self.source, line, reason) if line else None
        return TemplateError(
            title, f"{_place(self.name, line, column)}: {reason}.", _HINT, line=line, column=column
        )

    def _raise_syntax_error(self, error: jinja2.TemplateSyntaxError) -> NoReturn:
        message = (error.message or "not a template").rstrip(".")
        column = _column(self.source, error.lineno, message)
        if offset := re.search(r" at (\d+)$", message):  # the lexer counts in the whole source
            before = self.source.replace("\r\n", "\n")[: int(offset[1])]
            column = len(before) - (before.rfind("\n") + 1) + 1
            message = message[: offset.start()]
        raise TemplateError(
            "The chat template has a mistake.",
            f"{_place(self.name, error.lineno, column)}: {message}.",
            _HINT,
            line=error.lineno,
            column=column,
        ) from error


_SPELLED = {"end of print statement": "}}", "end of statement block": "%}"}  # Jinja's words
_HINT = "Choose another chat template in the model's settings or with --chat-template."


class _Refused(Exception):
    """The template does not take these turns; another variant may do."""

    def __init__(self, error: TemplateError) -> None:
        super().__init__(str(error))
        self.error = error


def choose_template(
    embedded: str | None,
    override: str | None = None,
    *,
    override_name: str = "the chosen template",
    bos_token: str = "",
    eos_token: str = "",
    architecture: str = "",
    has_token: Callable[[str], bool] = lambda token: False,
    clock: Callable[[], datetime] = datetime.now,
) -> ChatTemplate:
    """The template to use: the user's, else the model file's own, else a built-in one.

    `embedded` is the GGUF's `tokenizer.chat_template`; `override` a Jinja source or the name of a
    built-in template ("ChatML", "Llama 3", …) and `override_name` what to call it (a file name);
    `has_token` tells whether the vocabulary holds a token of that text. The model's own template
    must render a first message before it is trusted; where it cannot, or is missing, the built-in
    template that fits the vocabulary is taken and `notes` says so. Raises `TemplateError` only for
    an override that cannot be used.
    """

    def built(made: BuiltinTemplate, *notes: str) -> ChatTemplate:
        return ChatTemplate(
            made.source,
            name=f"{made.name} (built in)",
            bos_token=bos_token,
            eos_token=eos_token,
            notes=notes,
            clock=clock,
        )

    def tried(source: str, name: str) -> ChatTemplate:
        template = ChatTemplate(
            source, name=name, bos_token=bos_token, eos_token=eos_token, clock=clock
        )
        probe = "userprobe7391"
        if probe not in template.render((Turn(Role.USER, probe),)).text:
            raise TemplateError(
                "The chat template leaves out the messages.", f"{name}: no message text.", _HINT
            )
        return template

    if override is not None and override.strip():
        if made := builtin_template(override):
            return built(made)
        return tried(override, override_name)
    guess = guess_builtin(has_token, architecture)
    if embedded is None or not embedded.strip():
        return built(guess, f"The model file has no chat template: {guess.name} is used instead.")
    try:
        return tried(embedded, "the model file's own template")
    except TemplateError as error:
        return built(
            guess,
            "The model file's own chat template cannot be used"
            f" ({error.detail.rstrip('.')}): {guess.name} is used instead.",
        )


def _reads_key(source: str, key: str) -> bool:
    """Whether a template takes this key out of a message: `.key`, `['key']`, `get("key")`."""
    return re.search(rf"\.{key}\b|['\"]{key}['\"]", source) is not None


def _is_empty_answer(turn: Turn) -> bool:
    return turn.role is Role.ASSISTANT and not turn.text.strip()


def _joined(first: Turn, second: Turn) -> Turn:
    def both(one: str, other: str) -> str:
        return f"{one}\n\n{other}" if one and other else one or other

    return replace(
        first,
        text=both(first.text, second.text),
        reasoning=both(first.reasoning, second.reasoning),
    )


def _merged(turns: Iterable[Turn], notes: tuple[str, ...]) -> _Variant:
    """The turns with neighbours of one role joined by a blank line."""
    merged: list[Turn] = []
    joined = False
    for turn in turns:
        if merged and merged[-1].role is turn.role:
            merged[-1] = _joined(merged[-1], turn)
            joined = True
        else:
            merged.append(turn)
    return _Variant(tuple(merged), (*notes, _NOTE_MERGED) if joined else notes)


def _folded(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """The turns with each system turn put at the head of the next user turn."""
    folded: list[Turn] = []
    waiting = ""
    for turn in turns:
        if turn.role is Role.SYSTEM:
            waiting = f"{waiting}\n\n{turn.text}" if waiting else turn.text
        elif waiting and turn.role is Role.USER:
            folded.append(replace(turn, text=f"{waiting}\n\n{turn.text}" if turn.text else waiting))
            waiting = ""
        else:
            folded.append(turn)
    if waiting:
        folded.append(Turn(Role.USER, waiting))
    return tuple(folded)


def _openings(variant: _Variant) -> Iterator[_Variant]:
    """The conversation as it is and, if an answer leads it, with a user turn first."""
    yield variant
    system = variant.turns[: 1 if variant.turns[0].role is Role.SYSTEM else 0]
    rest = variant.turns[len(system) :]
    if not rest or rest[0].role is not Role.ASSISTANT:
        return
    opened = (*system, Turn(Role.USER, ""), *rest)
    yield _Variant(opened, (*variant.notes, _NOTE_OPENED))
    if len(rest) > 1:
        yield _Variant((*system, *rest[1:]), (*variant.notes, _NOTE_CUT))


def _tail(text: str, turns: tuple[Turn, ...]) -> str:
    """The prompt behind the last message's text, so that tags a person typed do not count."""
    last = turns[-1].text.strip()
    at = text.rfind(last) if last else -1
    return text if at < 0 else text[at + len(last) :]


def _line_of(error: BaseException) -> int | None:
    """The template's line an error came out of: Jinja rewrites tracebacks to its source."""
    line: int | None = None
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == FILE_NAME:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _column(source: str, line: int, message: str) -> int:
    """The column, from 1, of what `message` quotes in that line, else of its first character."""
    lines = source.splitlines()
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    quoted = [word for pair in re.findall(r"'([^']+)'|\"([^\"]+)\"", message) for word in pair]
    for word in reversed([word for word in quoted if word]):
        if (at := text.find(_SPELLED.get(word, word))) >= 0:
            return at + 1
    return len(text) - len(text.lstrip()) + 1


def _place(name: str, line: int | None, column: int | None) -> str:
    return f"{name}, line {line}, column {column}" if line else name
