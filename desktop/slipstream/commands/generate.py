"""`slipstream generate`: an answer on standard output, by the same session the window uses."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipstream.chat.ports import MeasurementStore
from slipstream.chat.records import FinishReason, Message, Role
from slipstream.commands.flags import (
    add_draft_flags,
    add_load_flags,
    add_sampler_flags,
    add_template_flags,
    as_json,
    draft_request,
    load_request,
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
from slipstream.engine.requests import AnswerRequest, DraftRequest, LoadRequest, TargetFacts
from slipstream.engine.speculation.drafter import DrafterKind
from slipstream.engine.speculation.verify_rule import VerifyRule
from slipstream.errors import ExitCode, Interrupted, UsageError, UserError
from slipstream.library.model_file import ModelFile, describe_model_file, require_chat_model

if TYPE_CHECKING:
    from slipstream.engine.target import PreparedAnswer, Target

_LAST_REASONS = (FinishReason.CANCELLED, FinishReason.ERROR)


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
    add_load_flags(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    parser.add_argument(
        "--show-reasoning", action="store_true", help="print the model's reasoning as well"
    )
    add_template_flags(parser)
    add_draft_flags(parser)
    add_sampler_flags(parser)


@dataclass
class Answer:
    """What one answer gathered."""

    text: str = ""
    reasoning: str = ""
    tokens: tuple[int, ...] = ()
    accepted_flags: tuple[bool, ...] = ()
    finished: Finished | None = None
    drafting_error: UserError | None = None  # why drafting stopped on the way

    def add(self, pieces: tuple[TextPiece, ...]) -> None:
        """Note text that became safe to show."""
        for piece in pieces:
            if piece.kind is TextKind.ANSWER:
                self.text += piece.text
            else:
                self.reasoning += piece.text


def run(arguments: argparse.Namespace, measurements: MeasurementStore) -> int:
    """Answer and print; returns the exit code. Raises `UserError` where nothing was answered.

    What pacing learns of a pair of models is kept in `measurements`.
    """
    settings = sampler_settings(arguments)
    request = load_request(arguments, Path(arguments.target))
    draft = draft_request(arguments)
    system, turns = _conversation(arguments)
    override, override_name = read_template(arguments.chat_template)
    model = describe_model_file(Path(arguments.target))
    require_chat_model(model)

    # llama.cpp is loaded only after everything that can fail quickly
    from slipstream.engine.template_variables import parse_variables

    target = _load(
        replace(
            request,
            path=model.path,
            chat_template=override,
            chat_template_name=override_name,
        ),
        draft,
        measurements,
    )
    try:
        asked = AnswerRequest(
            messages=(),
            system_prompt=system,
            settings=settings,
            template_variables=parse_variables(arguments.template_var, target.template.variables),
            verify=VerifyRule(arguments.verify),
        )
        with on_interrupt(target.session.cancel) as interrupted:
            answers, failure = _answer_all(target, asked, turns, arguments, interrupted)
        ended = ExitCode.INTERRUPTED if interrupted.is_set() else ExitCode.FINE
        return _conclude(answers, failure, model, target.facts, len(turns) > 1, arguments) or ended
    finally:
        target.close()


def _load(request: LoadRequest, draft: DraftRequest, measurements: MeasurementStore) -> Target:
    """Load the target and its draft. Raises `Interrupted` when Ctrl-C was pressed on the way.

    A `KeyboardInterrupt` could be raised inside one of llama.cpp's callbacks and be lost there.
    """
    with on_interrupt(_go_on) as interrupted:
        from slipstream.engine.llama import LoadCancelled
        from slipstream.engine.target import Target

        try:
            target = Target(
                request,
                progress=lambda _fraction: not interrupted.is_set(),
                measurements=measurements,
            )
        except LoadCancelled:
            raise Interrupted from None
        try:
            target.set_draft(draft)
            if interrupted.is_set():
                raise Interrupted
        except BaseException:
            target.close()
            raise
    return target


def _go_on() -> None:
    """The progress of the load looks at the event by itself."""


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
    interrupted: threading.Event,
) -> tuple[list[Answer], UserError | None]:
    """The answers, and why a later turn could not be answered. Raises where the first could not."""
    answers: list[Answer] = []
    messages: tuple[Message, ...] = ()
    for number, added in enumerate(turns):
        messages += added
        try:
            if arguments.raw:
                prepared = target.prepare_raw(added[-1].text, request)
            else:
                prepared = target.prepare(replace(request, messages=messages))
        except UserError as error:
            if not answers:
                raise
            return answers, error
        show = _no_show if arguments.json else _Printer(arguments.show_reasoning, first=number == 0)
        for note in prepared.notes if number else (*target.facts.notes, *prepared.notes):
            print(note, file=sys.stderr)
        try:
            answer = _answer(target, prepared, show)
        except UserError as error:
            if not answers:
                raise
            return answers, error
        answers.append(answer)
        assert answer.finished is not None
        # a Ctrl-C during the last round finds nothing to cancel in this answer any more
        if interrupted.is_set() or answer.finished.reason in _LAST_REASONS:
            break
        messages += (message(Role.ASSISTANT, answer.text, answer.reasoning),)
    return answers, None


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
                answer.accepted_flags += event.accepted_flags
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
    answers: list[Answer],
    failure: UserError | None,
    model: ModelFile,
    facts: TargetFacts,
    as_list: bool,
    arguments: argparse.Namespace,
) -> int:
    """Print what is still to print; returns the exit code of the failure, if there was one."""
    last = answers[-1].finished
    assert last is not None
    error = failure or last.error
    if arguments.json:
        draft = "" if arguments.draft is None else arguments.draft
        objects = [answer_object(answer, model, facts, draft) for answer in answers]
        shown: dict[str, Any] = {"answers": objects} if as_list else objects[0]
        if failure is not None:
            shown["error"] = error_object(failure)
        print(as_json(shown))
    else:
        if sys.stdout.isatty():
            print()
        if error is not None:
            print(error, file=sys.stderr)
    return ExitCode.FINE if error is None else error.exit_code


def answer_object(
    answer: Answer, model: ModelFile, facts: TargetFacts, draft_path: str
) -> dict[str, Any]:
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
        "threads": facts.n_threads,
        "threads_batch": facts.n_threads_batch,
        "flash_attention": facts.flash_attention,
        "accepted_flags": list(answer.accepted_flags),
        "speculation": _speculation_object(finished, answer.drafting_error, draft_path),
    }
    if finished.error is not None:
        shown["error"] = error_object(finished.error)
    return shown


def _speculation_object(
    finished: Finished, failed: UserError | None, draft_path: str
) -> dict[str, Any]:
    figures = finished.speculation
    active = finished.drafter is not DrafterKind.NONE and failed is None
    if failed is not None:
        reason = str(failed)
    elif not active:
        reason = "no drafter was asked for"
    elif finished.pace is not None and not figures.rounds:
        reason = "nothing was drafted: it would not have been faster on this machine"
    else:
        reason = ""
    shown: dict[str, Any] = {
        "drafter": str(finished.drafter),
        "draft_path": draft_path,
        "active": active,
        "reason": reason,
        "verify": str(finished.verify),
        "verify_note": finished.verify_note,
        "rounds": figures.rounds,
        "plain_passes": figures.plain_passes,
        "drafted": figures.drafted,
        "verified": figures.verified,
        "accepted": figures.accepted,
        "acceptance_rate": figures.acceptance_rate,
        "mean_accepted_length": figures.mean_accepted_length,
        "acceptance_by_position": list(figures.acceptance_by_position),
        "draft_seconds": figures.draft_seconds,
        "verify_seconds": figures.verify_seconds,
        "sample_seconds": figures.sample_seconds,
    }
    if figures.by_drafter:
        shown["by_drafter"] = {kind: dict(counts) for kind, counts in figures.by_drafter.items()}
    return shown


def error_object(error: UserError) -> dict[str, object]:
    """An error as `--json` prints it; the keys are a public contract."""
    return {
        "code": int(error.exit_code),
        "title": error.title,
        "detail": error.detail,
        "hint": error.hint,
    }
