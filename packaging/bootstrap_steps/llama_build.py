"""How llama.cpp is built for this processor, and whether an installed build is fit for it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from .environment import clean_environment
from .layout import Layout

# Native: all the instructions of this very processor. LLaVA: image input, which is not used.
FLAGS = "-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF"

# AMX tiles crash on virtual machines that announce them (llama.cpp issue 20824); without them
# ggml repacks the weights for AVX-512 instead.
WITHOUT_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"

SHOW_INSTRUCTIONS = (
    "import llama_cpp; print(llama_cpp.llama_print_system_info().decode('utf-8', 'replace'))"
)


def build_environment(layout: Layout, flags: str) -> dict[str, str]:
    """For pip: without SOURCE_DATE_EPOCH, which makes ggml turn vector instructions off."""
    environment = clean_environment()
    path = os.pathsep.join([str(layout.scripts), environment.get("PATH", "")])
    environment |= {"CMAKE_ARGS": flags, "PATH": path}
    if _compiler_knows(WITHOUT_AMX.split()):
        for name in ("CFLAGS", "CXXFLAGS"):
            environment[name] = f"{WITHOUT_AMX} {environment.get(name, '')}".strip()
    return environment


def installed_fault(layout: Layout) -> str | None:
    """Why the installed build must not be used on this machine, or None."""
    answer = subprocess.run(
        [layout.python, "-c", SHOW_INSTRUCTIONS],
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment(),
    )
    if answer.returncode != 0:
        lines = answer.stderr.strip().splitlines()
        return f"it does not load ({lines[-1] if lines else f'exit code {answer.returncode}'})"
    return instruction_fault(answer.stdout, processor_flags())


def instruction_fault(used: str, available: set[str]) -> str | None:
    """Compare ggml's list of the instructions it uses with the processor's; None when they fit."""
    if "AMX_INT8 = 1" in used:
        return "it uses AMX, which crashes on many virtual machines"
    if "avx2" in available and "AVX2 = 1" not in used:
        return "it does not use this processor's AVX2 and would be slow"
    return None


def processor_flags() -> set[str]:
    """What Linux says the processor can do; empty elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return set()
    return next((set(line.split()) for line in lines if line.startswith("flags")), set())


def _compiler_knows(options: list[str]) -> bool:
    if sys.platform == "win32" or platform.machine() not in ("x86_64", "AMD64"):
        return False
    compiler = (os.environ.get("CXX") or "c++").split()
    if not shutil.which(compiler[0]):
        return False
    command = [*compiler, *options, "-fsyntax-only", "-x", "c++", os.devnull]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
