"""The Python packages: those of the locks, llama-cpp-python built here, and Slipstream itself."""

from __future__ import annotations

import json
import os
import sys
import tomllib

from . import llama_build, system_packages
from .console import Console, SetupError
from .environment import clean_environment, installing, pip_install
from .layout import Layout
from .stamps import Stamps, digest, python_tag

BUILD_OPTIONS = ("--no-build-isolation", "--verbose", "--force-reinstall")

NETWORK_HINT = "Check the network, or the index that pip is configured to use, and run it again."


def lock_key(layout: Layout, lock: str) -> str:
    return digest(layout.lock(lock).read_bytes(), python_tag())


def locked_are_installed(layout: Layout, lock: str) -> bool:
    return Stamps(layout).read(f"packages-{lock}") == lock_key(layout, lock)


def install_locked(layout: Layout, lock: str, console: Console) -> None:
    """Install every wheel that a lock names. The test lock holds all of the run lock."""
    with installing(layout):
        console.run(
            pip_install(layout, layout.lock(lock)),
            environment=clean_environment(),
            failed="The packages could not be installed",
            try_this=NETWORK_HINT,
        )
    stamps = Stamps(layout)
    for name in (lock, "run") if lock == "test" else (lock,):
        stamps.write(f"packages-{name}", lock_key(layout, name))


def install_build_tools(layout: Layout, console: Console) -> None:
    """CMake, Ninja and the build back-ends: hashed like the rest, hence no isolated builds."""
    if not locked_are_installed(layout, "build"):
        install_locked(layout, "build", console)


def llama_flags(layout: Layout) -> str:
    """The CMake flags to build llama.cpp with: ours, then those of CMAKE_ARGS, which win.

    Without CMAKE_ARGS those of the last build stay, so that one build for a graphics card is not
    undone by the next plain start; an empty CMAKE_ARGS goes back to ours alone.
    """
    own = os.environ.get("CMAKE_ARGS")
    if own is None:
        own = Stamps(layout).read("llama-own-flags") or ""
    return f"{llama_build.FLAGS} {own}".strip()


def llama_is_installed(layout: Layout) -> bool:
    return Stamps(layout).read("llama") == llama_key(layout)


def llama_key(layout: Layout) -> str:
    return digest(lock_key(layout, "llama"), llama_flags(layout), llama_build.WITHOUT_AMX)


def install_llama(layout: Layout, console: Console) -> None:
    """Build and install llama-cpp-python from its hashed source, or from pip's cached build."""
    _require_compiler(console)
    install_build_tools(layout, console)
    flags = llama_flags(layout)
    _install_llama(layout, console, flags, llama_options(flags))
    fault = llama_build.installed_fault(layout)
    if fault and flags == llama_build.FLAGS:
        # pip's cache held a build with other flags, or one for another processor.
        console.note(
            f"The build of llama.cpp in pip's cache is no good here: {fault}. Building anew."
        )
        console.exit_code([layout.python, "-m", "pip", "cache", "remove", "llama_cpp_python"])
        _install_llama(layout, console, flags, [*BUILD_OPTIONS])
        fault = llama_build.installed_fault(layout)
        if fault:
            raise SetupError(
                f"llama.cpp was built, but {fault}.",
                "Build it for any processor: CMAKE_ARGS=-DGGML_NATIVE=OFF make run",
            )
    stamps = Stamps(layout)
    stamps.write("llama-own-flags", flags.removeprefix(llama_build.FLAGS).strip())
    stamps.write("llama", llama_key(layout))


def _install_llama(layout: Layout, console: Console, flags: str, options: list[str]) -> None:
    with installing(layout):
        console.run(
            pip_install(layout, layout.lock("llama"), *options),
            environment=llama_build.build_environment(layout, flags),
            failed="llama.cpp could not be built",
            try_this=_build_hint(),
        )


def llama_options(flags: str) -> list[str]:
    """For pip, whose wheel cache does not know which flags a wheel was built with."""
    return [*BUILD_OPTIONS, "--no-cache-dir"] if flags != llama_build.FLAGS else [*BUILD_OPTIONS]


def project_is_installed(layout: Layout) -> bool:
    return (
        Stamps(layout).read("project") == project_key(layout)
        and layout.script("slipstream").exists()
    )


def project_key(layout: Layout) -> str:
    """Changes with what an editable install reads of pyproject.toml, not with tools' settings."""
    tables = tomllib.loads(layout.pyproject.read_text("utf-8"))
    read = [tables["project"], tables["build-system"], tables["tool"]["setuptools"]]
    return digest(json.dumps(read, sort_keys=True), python_tag())


def install_project(layout: Layout, console: Console) -> None:
    """Put the source folder on the environment's path and make the command `slipstream`."""
    install_build_tools(layout, console)
    command = [str(layout.python), "-m", "pip", "install", "--no-deps", "--no-index"]
    with installing(layout):
        console.run(
            [*command, "--no-build-isolation", "--editable", layout.root],
            environment=clean_environment(),
            failed="Slipstream itself could not be installed",
        )
    Stamps(layout).write("project", project_key(layout))


def _require_compiler(console: Console) -> None:
    if system_packages.has_compiler():
        return
    package = [system_packages.COMPILER_PACKAGE]
    if system_packages.install(package, console) and system_packages.has_compiler():
        return
    raise SetupError("llama.cpp has to be built, and there is no C++ compiler here.", _build_hint())


def _build_hint() -> str:
    if os.name == "nt":
        return 'Install the Visual Studio Build Tools with "Desktop development with C++".'
    if sys.platform == "darwin":
        return "Install Apple's compiler: xcode-select --install"
    command = system_packages.command_text([system_packages.COMPILER_PACKAGE])
    return f"Install a C++ compiler. On Debian or Ubuntu: {command}"
