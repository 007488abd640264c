"""Sets Slipstream up from a fresh clone and runs it: `make run` and `make test` are thin over this.

The commands and steps live in bootstrap_steps; this file only checks the Python and picks the
command. Standard library only, and written so that a Python too old for the rest still says so.
"""

from __future__ import annotations

import sys

OLDEST_PYTHON = (3, 11)

USAGE = """\
usage: bootstrap.py COMMAND [ARGUMENT ...]

  run [ARGUMENT ...]     set up what is missing, then start Slipstream with these arguments
  test [ARGUMENT ...]    set up for tests, run the checks, then pytest with these arguments
  test-slow [ARGUMENT ...]  the same, with the tests marked slow and no others
  lint                   the checks without the tests
  setup                  only the set-up for run
  setup-test             only the set-up for test
  setup-peers            the programs that slow tests and benchmarks compare with
  setup-server           llama.cpp's own server, built like the library, for a benchmark
  lock [ARGUMENT ...]    write the lock files anew (arguments go to uv, for example --upgrade)
"""


def python_too_old(version: tuple[int, ...]) -> str | None:
    """The sentence for a person whose Python cannot run Slipstream, or None."""
    if tuple(version[:2]) >= OLDEST_PYTHON:
        return None
    return (
        "Slipstream needs Python {}.{} or newer; this is Python {}.{}. Install a newer one "
        "(Debian 12: apt-get install python3; Ubuntu 22.04: apt-get install python3.11 "
        "python3.11-venv; Windows and macOS: python.org) and run this command with it."
    ).format(*OLDEST_PYTHON, *version[:2])


def main(arguments: list[str]) -> int:
    """Run one command and return the exit code; 2 for a usage error, 130 after Ctrl-C."""
    too_old = python_too_old(sys.version_info)
    if too_old:
        print(too_old, file=sys.stderr)
        return 2
    # Imported here because these files use what older Pythons cannot even parse.
    from bootstrap_steps import commands
    from bootstrap_steps.console import SetupError

    known = commands.by_name()
    if not arguments or arguments[0] not in known:
        asked_for_help = arguments[:1] in (["-h"], ["--help"], ["help"])
        print(USAGE, end="", file=sys.stdout if asked_for_help else sys.stderr)
        return 0 if asked_for_help else 2
    try:
        return known[arguments[0]](arguments[1:])
    except SetupError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. Run the same command again to go on.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
