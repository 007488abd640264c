"""`slipstream generate`: an answer on standard output, by the same session the window uses."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipstream.chat.records import FinishReason, Message, Role
from slipstream.commands.flags import (
    add_sampler_flags,
    add_template_flags,
    as_json,
    read_template,
    sampler_settings,
)
from slipstream.commands.interrupt import on_interrupt
from slipstream.commands.messages import message, read_conversation, up_to_last_user_turn
from slipstream.engine.events import (
    DraftingStopped,
    Finished,
    PrefillProgress,
    TextKind,
    TextPiece,
    TextRun,
)
from slipstream.engine.requests import AnswerRequest, LoadRequest
from slipstream.errors import ExitCode, UsageError, UserError
from slipstream.library.model_file import ModelFile, describe_model_file, require_chat_model

if TYPE_CHECKING:
    from slipstream.engine.target import PreparedAnswer, Target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `generate`."""
    parser.add_argument("--target", required=True, metavar="FILE", help="the GGUF model to ask")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--prompt", metavar="TEXT", help="what to ask")
    source.add_argument(
        "--messages",
        metavar="FILE",
        help="a JSON list of {role, content} whose last user turn is answered; several user turns "
        "without answers between them are answered one after the other",
    )
    parser.add_argument(
        "--raw", action="store_true", help="continue the prompt as it stands, without a template"
    )
    parser.add_argument("--system", metavar="TEXT", help="the system prompt")
    parser.add_argument("--n-ctx", type=int, default=0, metavar="N", help="context in tokens")
    parser.add_argument(
        "--n-batch", type=int, default=0, metavar="N", help="prompt tokens per prefill chunk"
    )
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="threads to use")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    parser.add_argument(
        "--show-reasoning", action="store_true", help="print the model's reasoning as well"
    )
    add_template_flags(parser)
    add_sampler_flags(parser)


@dataclass
class Answer:
    """What one answer gathered."""

    text: str = ""
    reasoning: str = ""
    tokens: tuple[int, ...] = ()
    finished: Finished | None = None
    drafting_error: UserError | None = None  # why drafting stopped on the way

    def add(self, pieces: tuple[TextPiece, ...]) -> None:
        """Note text that became safe to show."""
        for piece in pieces:
            if piece.kind is TextKind.ANSWER:
                self.text += piece.text
            else:
                self.reasoning += piece.text


def run(arguments: argparse.Namespace) -> int:
    """Answer and print. Raises `UserError`; returns the exit code otherwise."""
    settings = sampler_settings(arguments)
    for name in ("n_ctx", "n_batch", "threads"):
        if getattr(arguments, name) < 0:
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"{flag} cannot be negative.", "", "Leave it out, or give 1 or more.")
    system, turns = _conversation(arguments)
    override, override_name = read_template(arguments.chat_template)
    model = describe_model_file(Path(arguments.target))
    require_chat_model(model)

    # llama.cpp is loaded only after everything that can fail quickly
    from slipstream.engine.target import Target
    from slipstream.engine.template_variables import parse_variables

    target = Target(
        LoadRequest(
            path=model.path,
            n_ctx=arguments.n_ctx,
            n_batch=arguments.n_batch,
            n_threads=arguments.threads,
            chat_template=override,
            chat_template_name=override_name,
        )
    )
    try:
        request = AnswerRequest(
            messages=(),
            system_prompt=system,
            settings=settings,
            template_variables=parse_variables(arguments.template_var, target.template.variables),
        )
        with on_interrupt(target.session.cancel) as interrupted:
            answers = _answer_all(target, request, turns, arguments)
        ended = ExitCode.INTERRUPTED if interrupted.is_set() else ExitCode.FINE
        return _conclude(answers, model, as_list=len(turns) > 1, arguments=arguments) or ended
    finally:
        target.close()


def _conversation(arguments: argparse.Namespace) -> tuple[str, tuple[tuple[Message, ...], ...]]:
    """The system prompt, and the turns to add before each answer that is wanted."""
    if arguments.raw and (arguments.messages is not None or arguments.system is not None):
        raise UsageError(
            "--raw takes a bare prompt.",
            "Messages and a system prompt need a template.",
            "Leave out --raw, or give the whole text as --prompt.",
        )
    if arguments.prompt is not None:
        return arguments.system or "", ((message(Role.USER, arguments.prompt),),)
    conversation = read_conversation(arguments.messages)
    if arguments.system is not None and conversation.system_prompt:
        raise UsageError(
            "There are two system prompts.",
            f"One is in {arguments.messages}, the other in --system.",
            "Leave one of them out.",
        )
    system = arguments.system or conversation.system_prompt
    if conversation.is_script:
        return system, tuple((turn,) for turn in conversation.messages)
    return system, (up_to_last_user_turn(conversation.messages),)


def _answer_all(
    target: Target,
    request: AnswerRequest,
    turns: tuple[tuple[Message, ...], ...],
    arguments: argparse.Namespace,
) -> list[Answer]:
    answers: list[Answer] = []
    messages: tuple[Message, ...] = ()
    for number, added in enumerate(turns):
        messages += added
        if arguments.raw:
            prepared = target.prepare_raw(added[-1].text, request)
        else:
            prepared = target.prepare(replace(request, messages=messages))
        show = _no_show if arguments.json else _Printer(arguments.show_reasoning, first=number == 0)
        if not arguments.json:
            for note in (*target.facts.notes, *prepared.notes):
                print(note, file=sys.stderr)
        answer = _answer(target, prepared, show)
        answers.append(answer)
        assert answer.finished is not None
        if answer.finished.reason in (FinishReason.CANCELLED, FinishReason.ERROR):
            break
        messages += (message(Role.ASSISTANT, answer.text, answer.reasoning),)
    return answers


def _answer(
    target: Target, prepared: PreparedAnswer, show: Callable[[tuple[TextPiece, ...]], None]
) -> Answer:
    answer = Answer()
    for event in target.session.generate(prepared.request):
        match event:
            case PrefillProgress():
                continue
            case DraftingStopped():
                answer.drafting_error = event.error
                continue
            case TextRun():
                answer.tokens += event.token_ids
            case Finished():
                answer.finished = event
        answer.add(event.pieces)
        show(event.pieces)
    return answer


def _no_show(pieces: tuple[TextPiece, ...]) -> None:
    """JSON is printed at the end."""


class _Printer:
    """Writes text as it comes; reasoning, where wanted, stands before the answer."""

    def __init__(self, show_reasoning: bool, *, first: bool) -> None:
        self._show_reasoning = show_reasoning
        self._last: TextKind | None = None if first else TextKind.ANSWER
        self._begun = first

    def __call__(self, pieces: tuple[TextPiece, ...]) -> None:
        for piece in pieces:
            if piece.kind is TextKind.REASONING and not self._show_reasoning:
                continue
            if not self._begun or (self._last is not None and self._last is not piece.kind):
                sys.stdout.write("\n\n")
            self._begun = True
            self._last = piece.kind
            sys.stdout.write(piece.text)
        sys.stdout.flush()


def _conclude(
    answers: list[Answer], model: ModelFile, *, as_list: bool, arguments: argparse.Namespace
) -> int:
    """Print what is still to print; returns the exit code of the last answer."""
    last = answers[-1].finished
    assert last is not None
    if arguments.json:
        objects = [answer_object(answer, model) for answer in answers]
        print(as_json({"answers": objects} if as_list else objects[0]))
    else:
        if sys.stdout.isatty():
            print()
        if last.error is not None:
            print(last.error, file=sys.stderr)
    return ExitCode.FINE if last.error is None else last.error.exit_code


def answer_object(answer: Answer, model: ModelFile) -> dict[str, Any]:
    """An answer as `--json` prints it; the keys are a public contract."""
    finished = answer.finished
    assert finished is not None
    numbers = finished.statistics
    shown: dict[str, Any] = {
        "text": answer.text,
        "reasoning": answer.reasoning,
        "finish_reason": str(finished.reason),
        "stop_string": finished.stop_string,
        "tokens": list(answer.tokens),
        "prompt_tokens": numbers.prompt_tokens,
        "cached_prompt_tokens": numbers.cached_prompt_tokens,
        "generated_tokens": numbers.generated_tokens,
        "seed": finished.seed,
        "prefill_seconds": numbers.prefill_seconds,
        "time_to_first_token_seconds": numbers.time_to_first_token_seconds,
        "decode_seconds": numbers.decode_seconds,
        "prefill_tokens_per_second": numbers.prefill_tokens_per_second,
        "decode_tokens_per_second": numbers.decode_tokens_per_second,
        "model": {
            "path": str(model.path),
            "name": model.name,
            "architecture": model.architecture,
            "quantisation": model.quantisation,
        },
    }
    if finished.error is not None:
        shown["error"] = error_object(finished.error)
    return shown


def error_object(error: UserError) -> dict[str, object]:
    """An error as `--json` prints it; the keys are a public contract."""
    return {
        "code": int(error.exit_code),
        "title": error.title,
        "detail": error.detail,
        "hint": error.hint,
    }
