"""`slipstream inspect`: what a model file says about itself, or about a pair; loads nothing."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from slipstream.commands.flags import (
    add_template_flags,
    as_json,
    read_template,
)
from slipstream.commands.messages import read_conversation
from slipstream.errors import ExitCode, UsageError
from slipstream.library.model_file import describe_model_file, facts, facts_text, format_size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `inspect`."""
    parser.add_argument("file", metavar="FILE", help="a GGUF file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--render",
        metavar="MESSAGES",
        help="print the exact prompt the model would see for a JSON list of {role, content}",
    )
    parser.add_argument(
        "--draft", metavar="DRAFT", help="tell whether this file can draft for FILE, and why not"
    )
    add_template_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the facts, the rendered prompt or the verdict. Raises `UserError`."""
    if arguments.render is not None and arguments.draft is not None:
        raise UsageError(
            "There are two things to show.",
            "--render shows a prompt and --draft a verdict.",
            "Leave out one of the two.",
        )
    if arguments.render is not None:
        return _render(arguments)
    if arguments.chat_template is not None or arguments.template_var:
        raise UsageError(
            "There is nothing to render.",
            "--chat-template and --template-var change the rendered prompt.",
            "Add --render MESSAGES.json.",
        )
    if arguments.draft is not None:
        return _judge(Path(arguments.file), Path(arguments.draft), as_object=arguments.json)
    model = describe_model_file(Path(arguments.file))
    print(as_json(facts(model)) if arguments.json else facts_text(model))
    return ExitCode.FINE


def _render(arguments: argparse.Namespace) -> int:
    from slipstream.engine.file_template import template_of_file, turns_of
    from slipstream.engine.template_variables import parse_variables

    conversation = read_conversation(arguments.render)
    override, override_name = read_template(arguments.chat_template)
    template = template_of_file(Path(arguments.file), override, override_name)
    prompt = template.render(
        turns_of(conversation.messages, conversation.system_prompt),
        variables=parse_variables(arguments.template_var, template.variables),
    )
    notes = (*template.notes, *prompt.notes)
    if arguments.json:
        print(as_json({"prompt": prompt.text, "template": template.name, "notes": list(notes)}))
        return ExitCode.FINE
    for note in notes:
        print(note, file=sys.stderr)
    sys.stdout.write(prompt.text)
    return ExitCode.FINE


def _judge(target: Path, draft: Path, *, as_object: bool) -> int:
    """A pair that does not fit is an answer like any other, not a failure."""
    from slipstream.engine.speculation.compatibility import judge_draft

    files = [
        (label, describe_model_file(path)) for label, path in (("Target", target), ("Draft", draft))
    ]
    verdict = judge_draft(target, draft)
    if as_object:
        print(
            as_json(
                {
                    "kind": None if verdict.kind is None else verdict.kind.value,
                    "compatible": verdict.compatible,
                    "reason": verdict.reason,
                    "warnings": list(verdict.warnings),
                    "details": dict(verdict.details),
                }
            )
        )
        return ExitCode.FINE
    lines = [
        (label, f"{model.name} ({model.kind.description}, {format_size(model.size_bytes)})")
        for label, model in files
    ]
    lines.append(("Fits", "yes" if verdict.compatible else "no"))
    if verdict.kind is not None:
        lines.append(("Drafter", verdict.kind.value))
    lines.append(("Reason", verdict.reason))
    lines.extend(("Warning", warning) for warning in verdict.warnings)
    print("\n".join(f"{label + ':':<8} {text}" for label, text in lines))
    return ExitCode.FINE
