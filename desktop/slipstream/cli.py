"""The command line: reads the arguments, runs a subcommand, turns errors into words and codes."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from slipstream import __version__
from slipstream.commands.flags import Parser, as_json
from slipstream.errors import ExitCode, Interrupted, UsageError, UserError, internal_fault

_DESCRIPTIONS = {
    "generate": "answer a prompt on standard output",
    "bench": "measure every way to draft for a model on this machine",
    "inspect": "show what a model file says about itself",
    "self-test": "check that this installation works",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `slipstream` with these arguments (the process's own by default); returns its exit code.

    The program's own faults end in exit code 1 with a sentence and, on standard error, a traceback.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    for name in ("stdout", "stderr"):  # None where the descriptor was closed
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        code = _run(given)
        sys.stdout.flush()
        return code
    except UserError as error:
        return _tell(error, as_object="--json" in given)
    except BrokenPipeError:
        # the reader of our output went away, as `head` does; nothing more can be told
        _drop_output()
        return ExitCode.INTERNAL
    except KeyboardInterrupt:
        return _tell(Interrupted(), as_object="--json" in given)
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            _drop_output()
            return _tell(UserError("The output could not be written.", "The disk is full."))
        if isinstance(error, FileNotFoundError) and not _has_folder():
            return _tell(_folder_gone(), as_object="--json" in given)
        traceback.print_exc()
        return _tell(internal_fault(error), as_object="--json" in given)


def _drop_output() -> None:
    """Forget what is still to be written to standard output; flushing it would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _has_folder() -> bool:
    """Whether the current folder still exists."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _folder_gone() -> UserError:
    return UsageError(
        "The current folder does not exist any more.",
        "File names without a folder are looked up there.",
        "Go to another folder, then try again.",
    )


def _tell(error: UserError, *, as_object: bool = False) -> int:
    with contextlib.suppress(OSError):  # where even this cannot be written, the code must do
        if as_object:
            from slipstream.commands.generate import error_object

            print(as_json({"error": error_object(error)}), flush=True)
        else:
            print(f"slipstream: {error}", file=sys.stderr)
        return error.exit_code
    _drop_output()
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

    from slipstream.storage.data_dir import data_directory
    from slipstream.storage.measurements import MeasurementFile

    data = data_directory(data_dir)
    measurements = MeasurementFile(data.measurements_file)
    if name == "generate":
        from slipstream.commands import generate

        generate.add_arguments(parser)
        return lambda arguments: generate.run(arguments, measurements)
    if name == "bench":
        from slipstream.commands import bench

        bench.add_arguments(parser)
        return lambda arguments: bench.run(arguments, measurements)

    from slipstream.commands import self_test

    self_test.add_arguments(parser)

    def gui_check(model: Path) -> str:
        from slipstream.app import ask_through_window

        return ask_through_window(model)

    folder = data.chats_file.parent
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
    # until the window listens for it, Ctrl-C ends the process at once: raised as an exception, it
    # could come up inside Qt's own start, which aborts
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from slipstream.app import run_window

        return run_window(options.data_dir, options.file)
    finally:
        signal.signal(signal.SIGINT, before)
