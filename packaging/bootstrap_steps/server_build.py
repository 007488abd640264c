"""Builds llama.cpp's own server from llama-cpp-python's source, to compare speeds with.

The same source, compiler and flags as the library that Slipstream uses.
"""

from __future__ import annotations

import shlex
import shutil
import tarfile
import tempfile
from pathlib import Path

from .console import Console, SetupError
from .downloads import llama_source
from .layout import Layout
from .llama_build import build_environment
from .packages import install_build_tools, llama_flags, llama_key
from .stamps import write_atomically

_SOURCE = "vendor/llama.cpp"
_ALONE = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
)


def server_is_built(layout: Layout) -> bool:
    mark = layout.llama_server.with_name("BUILD")
    built = mark.is_file() and mark.read_text("utf-8") == llama_key(layout)
    return built and layout.llama_server.is_file()


def build_server(layout: Layout, console: Console) -> None:
    install_build_tools(layout, console)
    flags = llama_flags(layout)
    environment = build_environment(layout, flags)
    with (
        tempfile.TemporaryDirectory(prefix="server-", dir=layout.cache) as name,
        llama_source(layout, console) as sdist,
    ):
        source = _extracted(sdist, Path(name))
        build = Path(name) / "build"
        cmake = str(layout.script("cmake"))
        for command in (
            [cmake, "-G", "Ninja", "-S", source, "-B", build, *shlex.split(flags), *_ALONE],
            [cmake, "--build", build, "--target", "llama-server"],
        ):
            console.run(
                command,
                environment=environment,
                failed="llama.cpp's server could not be built",
                try_this="Look into .cache/setup.log; Slipstream itself does not need it.",
            )
        layout.llama_server.parent.mkdir(exist_ok=True)
        shutil.copy2(build / "bin" / layout.llama_server.name, layout.llama_server)
        write_atomically(layout.llama_server.with_name("BUILD"), llama_key(layout).encode())


def _extracted(sdist: Path, folder: Path) -> Path:
    """The folder of llama.cpp's source, from the archive."""
    if not hasattr(tarfile, "data_filter"):
        raise SetupError("This needs Python 3.11.4 or newer, which unpacks archives safely.")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    found = list(folder.glob(f"*/{_SOURCE}"))
    if len(found) != 1:
        raise SetupError(f"{sdist.name} does not hold llama.cpp's source.")
    return found[0]
