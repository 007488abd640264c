"""The command line: reads the arguments, runs a subcommand, turns errors into words and codes."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from slipstream import __version__
from slipstream.commands.flags import Parser, as_json
from slipstream.errors import ExitCode, Interrupted, UserError, internal_fault

_DESCRIPTIONS = {
    "generate": "answer a prompt on standard output",
    "inspect": "show what a model file says about itself",
    "self-test": "check that this installation works",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `slipstream` with these arguments (the process's own by default); returns its exit code.

    The program's own faults end in exit code 1 with a sentence and, on standard error, a traceback.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        return _run(given)
    except UserError as error:
        return _tell(error, as_object="--json" in given)
    except BrokenPipeError:
        # the reader of our output went away, as `head` does; nothing more can be told
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.INTERNAL
    except KeyboardInterrupt:
        return _tell(Interrupted(), as_object="--json" in given)
    except Exception as error:
        traceback.print_exc()
        return _tell(internal_fault(error), as_object="--json" in given)


def _tell(error: UserError, *, as_object: bool) -> int:
    if as_object:
        from slipstream.commands.generate import error_object

        print(as_json({"error": error_object(error)}))
    else:
        print(f"slipstream: {error}", file=sys.stderr)
    return error.exit_code


def _run(given: list[str]) -> int:
    before, command, after = _split(given)
    if command is None:
        return _open_window(_window_parser().parse_args(given))
    options = _global_parser().parse_args(before)
    parser = Parser(prog=f"slipstream {command}", description=_DESCRIPTIONS[command].capitalize())
    run = _command(command, parser, options.data_dir)
    return run(parser.parse_args(after))


def _split(given: list[str]) -> tuple[list[str], str | None, list[str]]:
    """The arguments before a subcommand, its name (None for the window), and those after it."""
    index = 0
    while index < len(given):
        if given[index] == "--data-dir":
            index += 2
        elif given[index].startswith("-"):
            index += 1
        elif given[index] in _DESCRIPTIONS:
            return given[:index], given[index], given[index + 1 :]
        else:
            break
    return given, None, []


def _command(
    name: str, parser: argparse.ArgumentParser, data_dir: Path | None
) -> Callable[[argparse.Namespace], int]:
    # imported one by one: `inspect` must not wait for what `generate` needs
    if name == "inspect":
        from slipstream.commands import inspect

        inspect.add_arguments(parser)
        return inspect.run
    if name == "generate":
        from slipstream.commands import generate

        generate.add_arguments(parser)
        return generate.run

    from slipstream.commands import self_test
    from slipstream.storage.data_dir import data_directory

    self_test.add_arguments(parser)

    def gui_check(model: Path) -> str:
        from slipstream.app import ask_through_window

        return ask_through_window(model)

    folder = data_directory(data_dir).chats_file.parent
    return lambda arguments: self_test.run(arguments, folder, gui_check)


def _add_global_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="keep settings, chats and logs in this folder and nowhere else",
    )
    parser.add_argument("--version", action="version", version=f"slipstream {__version__}")


def _global_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="slipstream", add_help=False)
    _add_global_flags(parser)
    return parser


def _window_parser() -> argparse.ArgumentParser:
    commands = "\n".join(f"  {name:<10} {words}" for name, words in _DESCRIPTIONS.items())
    parser = Parser(
        prog="slipstream",
        description="Chat with local language models, offline.",
        epilog=f"commands (slipstream COMMAND -h tells more):\n{commands}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_global_flags(parser)
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE.gguf", help="open this model")
    return parser


def _open_window(options: argparse.Namespace) -> int:
    from slipstream.app import run_window

    return run_window(options.data_dir, options.file)
