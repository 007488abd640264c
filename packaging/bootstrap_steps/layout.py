"""Where everything the set-up reads and writes lives inside one clone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Layout:
    """The paths of one clone; `root` is absolute and free of symbolic links."""

    root: Path

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def scripts(self) -> Path:
        return self.venv / ("Scripts" if os.name == "nt" else "bin")

    @property
    def python(self) -> Path:
        return self.script("python")

    @property
    def cache(self) -> Path:
        return self.root / ".cache"

    @property
    def llama_cpp_files(self) -> Path:
        """Chat templates and vocabularies of llama.cpp, for tests."""
        return self.cache / "llama.cpp"

    @property
    def llama_server(self) -> Path:
        """llama.cpp's own server, where it was built to compare with."""
        return self.cache / "llama-server" / f"llama-server{'.exe' if os.name == 'nt' else ''}"

    @property
    def models(self) -> Path:
        return self.root / "resources" / "models"

    @property
    def pyproject(self) -> Path:
        return self.root / "pyproject.toml"

    def lock(self, name: str) -> Path:
        return self.root / "packaging" / "requirements" / f"{name}.lock"

    def script(self, name: str) -> Path:
        """A console command inside the virtual environment."""
        return self.scripts / (f"{name}.exe" if os.name == "nt" else name)

    def site_packages(self, package_pattern: str) -> list[Path]:
        """What matches inside site-packages, without starting the environment's Python."""
        library = "Lib" if os.name == "nt" else "lib/python*"
        return list(self.venv.glob(f"{library}/site-packages/{package_pattern}"))
