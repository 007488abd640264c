"""System libraries and programs: finds what is missing, installs it through apt where allowed.

Everything but a compiler is optional: what cannot be installed is named, and the set-up goes on.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .console import Console

# What Qt's xcb, wayland and offscreen platforms and the built llama.cpp load, by shared-object
# name, and Debian's package for each. Newer releases carry a t64 suffix on some.
LIBRARIES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgomp.so.1": "libgomp1",
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libwayland-egl.so.1": "libwayland-egl1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxcb.so.1": "libxcb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon0",
}
FONT_PACKAGE = "fonts-dejavu-core"
TEST_PROGRAMS = {"Xvfb": "xvfb", "xauth": "xauth"}
COMPILER_PACKAGE = "g++"

FONT_FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts", "~/.local/share/fonts", "~/.fonts")


@dataclass(frozen=True)
class Missing:
    """What was looked for and not found, and the Debian packages that hold it."""

    what: tuple[str, ...]
    packages: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.packages)


def missing(for_tests: bool) -> Missing:
    """What Qt, and for tests a virtual screen, still lack on this machine; nothing off Linux."""
    if not sys.platform.startswith("linux"):
        return Missing((), ())
    found = {name: package for name, package in LIBRARIES.items() if not _loads(name)}
    if not _has_fonts():
        found["a font"] = FONT_PACKAGE
    if for_tests:
        found |= {
            name: package for name, package in TEST_PROGRAMS.items() if not shutil.which(name)
        }
    # A library may be there for the system but not for this Python (conda, nix): apt cannot help.
    installed = installed_packages(found.values()) if found else set()
    wanted = {name: package for name, package in found.items() if package not in installed}
    return Missing(tuple(wanted), tuple(sorted(set(wanted.values()))))


def install_missing(for_tests: bool, console: Console) -> None:
    """Install what is missing, or print the exact command and let the set-up go on."""
    lacking = missing(for_tests)
    if not lacking or install(lacking.packages, console):
        return
    if shutil.which("apt-get"):
        console.note(
            "These packages are missing and could not be installed without root rights. "
            "If the window does not open, run:"
        )
        console.note(f"  {command_text(lacking.packages)}")
    else:
        console.note(
            "Missing here, please install them with your package manager if the window does not "
            f"open: {', '.join(lacking.what)}"
        )


def has_compiler() -> bool:
    """Whether a C++ compiler can be called; on Windows CMake looks for Visual Studio itself."""
    if os.name == "nt":
        return True
    if sys.platform == "darwin":  # /usr/bin/c++ is always there, a stub until the tools are
        return _succeeds(["xcode-select", "-p"])
    names = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    return any(name and shutil.which(name.split()[0]) for name in names)


def install(packages: Sequence[str], console: Console) -> bool:
    """Install Debian packages without asking anything; False when that is not possible here."""
    prefix = privilege_prefix()
    if prefix is None or not shutil.which("apt-get"):
        return False
    quiet = [
        *prefix,
        "env",
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "-o",
        "DPkg::Lock::Timeout=120",
    ]
    console.exit_code([*quiet, "update"])  # may fail for one of many sources and still be enough
    names = available_names(packages)
    return console.exit_code([*quiet, "install", "-y", "--no-install-recommends", *names]) == 0


def command_text(packages: Iterable[str]) -> str:
    """The command a person types to install these packages on Debian or Ubuntu."""
    names = " ".join(available_names(packages))
    return f"sudo apt-get update && sudo apt-get install -y --no-install-recommends {names}"


def privilege_prefix() -> list[str] | None:
    """What to put before a command that needs root; None when a password would be asked for."""
    if not hasattr(os, "geteuid"):
        return None
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and _succeeds(["sudo", "-n", "true"]):
        return ["sudo", "-n"]
    return None


def available_names(packages: Iterable[str]) -> list[str]:
    """The packages under the names this release knows: with the suffix t64 where it has that."""
    wanted = list(packages)
    renamed = [f"{name}t64" for name in wanted]
    if not shutil.which("apt-cache"):
        return wanted
    known = set(_output(["apt-cache", "pkgnames"]).split())
    return [new if new in known else old for old, new in zip(wanted, renamed, strict=True)]


def installed_packages(packages: Iterable[str]) -> set[str]:
    """Those of the packages that dpkg has; empty where there is no dpkg."""
    if not shutil.which("dpkg-query"):
        return set()
    names = [name for package in packages for name in (package, f"{package}t64")]
    lines = _output(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *names])
    words = (line.split() for line in lines.splitlines())
    return {word[0].removesuffix("t64") for word in words if word[1:] == ["installed"]}


def _loads(shared_object: str) -> bool:
    try:
        ctypes.CDLL(shared_object)
    except OSError:
        return False
    return True


def _has_fonts() -> bool:
    folders = (Path(folder).expanduser() for folder in FONT_FOLDERS)
    return any(
        path.suffix.lower() in (".ttf", ".otf", ".ttc")
        for folder in folders
        if folder.is_dir()
        for path in folder.rglob("*.*")
    )


def _succeeds(command: list[str]) -> bool:
    try:
        return (
            subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL).returncode == 0
        )
    except OSError:
        return False


def _output(command: list[str]) -> str:
    # The exit code says only that some package is unknown, which the caller sees in the output.
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
