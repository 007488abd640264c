"""The order of the set-up: which steps there are, which are still to do, and doing them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import downloads, environment, packages, server_build, system_packages
from .console import Console
from .layout import Layout
from .setup_lock import setup_lock


@dataclass(frozen=True)
class Step:
    """One thing to set up; `is_done` is fast and changes nothing."""

    title: str
    is_done: Callable[[], bool]
    perform: Callable[[Console], None]
    in_environment: bool = False  # undone as soon as .venv is made anew


def setup_steps(layout: Layout, for_tests: bool) -> list[Step]:
    """All steps in order; the first makes the environment."""
    lock = "test" if for_tests else "run"
    steps = [
        Step(
            "Making the Python environment in .venv",
            lambda: environment.is_ready(layout),
            lambda console: environment.make_ready(layout, console),
        ),
        Step(
            "Looking after the system libraries that Qt needs",
            lambda: not system_packages.missing(for_tests),
            lambda console: system_packages.install_missing(for_tests, console),
        ),
        Step(
            "Installing Qt and the other packages",
            lambda: packages.locked_are_installed(layout, lock),
            lambda console: packages.install_locked(layout, lock, console),
            in_environment=True,
        ),
        Step(
            "Building llama.cpp (3–15 minutes the first time; cached afterwards)",
            lambda: packages.llama_is_installed(layout),
            lambda console: packages.install_llama(layout, console),
            in_environment=True,
        ),
        Step(
            "Installing Slipstream itself",
            lambda: packages.project_is_installed(layout),
            lambda console: packages.install_project(layout, console),
            in_environment=True,
        ),
        Step(
            "Fetching the starter model (93 MB)",
            lambda: downloads.starter_model_is_there(layout),
            lambda console: downloads.fetch_starter_model(layout, console),
        ),
    ]
    if for_tests:
        steps.append(
            Step(
                "Fetching llama.cpp's chat templates and vocabularies (77 MB)",
                lambda: downloads.llama_cpp_files_are_there(layout),
                lambda console: downloads.fetch_llama_cpp_files(layout, console),
            )
        )
    return steps


def pending(steps: list[Step]) -> list[Step]:
    """The steps to do: with a new environment, all that live in it, whatever their marks say."""
    first, *later = steps
    if first.is_done():
        return [step for step in later if not step.is_done()]
    return [first, *(step for step in later if step.in_environment or not step.is_done())]


def _peers(layout: Layout) -> Step:
    return Step(
        "Installing the programs to compare with",
        lambda: packages.locked_are_installed(layout, "peers"),
        lambda console: packages.install_locked(layout, "peers", console),
        in_environment=True,
    )


def _server(layout: Layout) -> Step:
    return Step(
        "Building llama.cpp's own server (4–15 minutes)",
        lambda: server_build.server_is_built(layout),
        lambda console: server_build.build_server(layout, console),
    )


def set_up(
    layout: Layout, for_tests: bool, *, with_peers: bool = False, with_server: bool = False
) -> None:
    """Do what is still to do, one step after the other; says nothing when all is done."""
    steps = setup_steps(layout, for_tests)
    if with_peers:
        steps.append(_peers(layout))
    if with_server:
        steps.append(_server(layout))
    if not pending(steps):
        return
    with setup_lock(layout.cache / "setup.lock"):
        to_do = pending(steps)
        console = Console(layout.cache / "setup.log", len(to_do))
        for step in to_do:
            console.start_step(step.title)
            step.perform(console)
            console.finish_step()
