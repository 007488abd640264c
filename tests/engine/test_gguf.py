"""The header reader: right about good files, and never anything but a GgufError about bad ones."""

from __future__ import annotations

import io
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.raw_header import (
    ARRAY,
    FLOAT32,
    INT32,
    SMALL_DATA_BYTES,
    STRING,
    UINT8,
    UINT32,
    UINT64,
    RawHeader,
    build_large_header,
    small_header,
)
from models.tiny_llama import build_tiny_llama
from models.vocabulary import spm_vocabulary
from slipstream.engine.ggml_types import GGML_TYPES
from slipstream.engine.gguf import (
    ArrayInfo,
    ByteOrder,
    FileFault,
    GgufError,
    Header,
    TensorInfo,
    ValueType,
    parse_header,
    read_array,
    read_header,
    read_int64_tensor,
    read_strings,
)


def parse(raw: bytes, size: int | None = None) -> Header:
    return parse_header(io.BytesIO(raw), "model.gguf", len(raw) if size is None else size)


def fault_of(raw: bytes, size: int | None = None) -> GgufError:
    """The error `raw` gives, its sentences checked."""
    with pytest.raises(GgufError) as caught:
        parse(raw, size)
    return check_sentences(caught.value, "model.gguf")


def check_sentences(error: GgufError, name: str) -> GgufError:
    assert name in error.title
    for sentence in (error.title, error.detail, error.hint):
        assert sentence
        assert sentence[-1] in ".)", sentence
        assert sentence.encode("utf-8")
    assert error.exit_code == 3
    return error


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("big_endian", [False, True])
def test_every_version_and_byte_order(version: int, big_endian: bool) -> None:
    raw = small_header(version=version, big_endian=big_endian).to_bytes(data=SMALL_DATA_BYTES)
    header = parse(raw)
    assert header.version == version
    assert header.byte_order is (ByteOrder.BIG if big_endian else ByteOrder.LITTLE)
    assert header.architecture == "llama"
    assert header.text("general.name") == "Süß 模型 😀"
    scalars = [value for key, value in header.metadata.items() if key.startswith("test.scalar")]
    assert scalars == [
        200, -100, 60_000, -30_000, 4_000_000_000, -2_000_000_000, 0.5, True, 2**63 + 1, -(2**62),
        1e300,
    ]  # fmt: skip
    assert header.metadata["test.numbers"] == (2, 15, 27)
    assert header.metadata["test.texts"] == ("a", "", "ü")
    assert header.metadata["test.empty"] == ()
    nested = header.metadata["test.nested"]
    assert isinstance(nested, ArrayInfo)
    assert (nested.type, nested.length) == (ValueType.ARRAY, 2)
    assert header.tensors == (
        TensorInfo("first.weight", (8, 4), 0, 0, 128),
        TensorInfo("second.weight", (32, 3), 8, 128, 3 * 34),
    )
    assert header.tensors[1].type_name == "Q8_0"
    assert header.tensors[1].elements == 96
    assert header.data_offset == len(raw) - SMALL_DATA_BYTES
    assert header.data_offset % header.alignment == 0


def test_typed_getters_refuse_other_types() -> None:
    header = parse(small_header().to_bytes(data=SMALL_DATA_BYTES))
    assert header.integer("test.scalar.7") is None
    assert header.flag("test.scalar.7") is True
    assert header.flag("test.scalar.4") is None
    assert header.text("test.scalar.4") is None
    assert header.array_length("test.texts") == 3
    assert header.array_length("general.name") is None


@pytest.mark.parametrize("version", [1, 3])
def test_truncated_at_every_byte(version: int) -> None:
    raw = small_header(version=version).to_bytes(data=SMALL_DATA_BYTES)
    for length in range(len(raw)):
        error = fault_of(raw[:length])
        if length == 0:
            assert error.kind is FileFault.EMPTY
            continue
        assert error.kind is FileFault.TRUNCATED, length
        assert error.found == length
        assert error.expected is not None
        assert length < error.expected <= len(raw)
        assert f"{length:,}" in error.detail


def test_half_a_download_names_both_sizes(tmp_path: Path) -> None:
    path = build_tiny_llama(tmp_path / "half.gguf")
    whole = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(whole // 2)
    with pytest.raises(GgufError) as caught:
        read_header(path)
    error = check_sentences(caught.value, "half.gguf")
    assert (error.kind, error.expected, error.found) == (FileFault.TRUNCATED, whole, whole // 2)
    assert f"{whole:,}" in error.detail
    assert "(50 %)" in error.detail or "(49 %)" in error.detail
    assert "again" in error.hint


def test_file_shorter_than_claimed_by_the_system() -> None:
    raw = small_header().to_bytes(data=SMALL_DATA_BYTES)
    assert fault_of(raw[:100], size=len(raw)).kind is FileFault.TRUNCATED


def head(**changes: object) -> RawHeader:
    header = RawHeader(**changes)  # type: ignore[arg-type]
    return header.entry("general.architecture", STRING, "llama")


DAMAGED: dict[str, bytes] = {
    "version 0": head(version=0).to_bytes(),
    "version nonsense": b"GGUF" + b"\x12\x34\x56\x78" + bytes(16),
    "too many entries": head(entry_count=2**40).to_bytes(),
    "too many tensors": head(tensor_count=2**63).to_bytes(),
    "all ones": b"GGUF\x03\0\0\0" + b"\xff" * 64,
    "duplicate key": head().entry("general.architecture", UINT32, 1).to_bytes(),
    "empty key": head().entry("", UINT32, 1).to_bytes(),
    "key not text": head().entry(b"\xff\xfe", UINT32, 1).to_bytes(),
    "key too long": head().entry("k" * 70_000, UINT32, 1).to_bytes(),
    "unknown value type": head()
    .entry("key", UINT32, 13)
    .to_bytes()
    .replace(b"key\x04\0\0\0", b"key\x0d\0\0\0"),
    "unknown element type": head().raw_array("key", 99, 0, b"").to_bytes(),
    "huge text": head().raw_array("key", STRING, 1, b"\xff" * 8).to_bytes(),
    "huge number array": head().raw_array("key", UINT64, 2**61, b"").to_bytes(),
    "overflowing number array": head().raw_array("key", UINT64, 2**64 - 1, b"").to_bytes(),
    "too many texts": head().raw_array("key", STRING, 2**40, b"").to_bytes(),
    "too many lists": head().raw_array("key", ARRAY, 2**24, b"").to_bytes(),
    "nested too deep": head()
    .raw_array("k", ARRAY, 1, (b"\x09\0\0\0\x01" + bytes(7)) * 9)
    .to_bytes(),
    "alignment not a power": head().entry("general.alignment", UINT32, 24).to_bytes(),
    "alignment zero": head().entry("general.alignment", UINT32, 0).to_bytes(),
    "alignment type": head().entry("general.alignment", UINT64, 32).to_bytes(),
    "alignment text": head().entry("general.alignment", STRING, "32").to_bytes(),
    "tensor name too long": head().tensor("t" * 64, (8,)).to_bytes(data=32),
    "tensor name not text": head().tensor(b"\xff", (8,)).to_bytes(data=32),
    "too many dimensions": head().tensor("t", (1,) * 5).to_bytes(data=32),
    "elements overflow": head().tensor("t", (2**32, 2**32)).to_bytes(data=32),
    "elements overflow before a zero": head().tensor("t", (2**40, 2**40, 0)).to_bytes(data=32),
    "dimension overflow": head().tensor("t", (2**64 - 1,)).to_bytes(data=32),
    "bytes beyond any disk": head().tensor("t", (2**50,)).to_bytes(data=32),
    "row not whole blocks": head().tensor("t", (33,), 8).to_bytes(data=64),
    "duplicate tensor": head().tensor("t", (8,)).tensor("t", (8,), 0, 32).to_bytes(data=64),
    "offset not aligned": head().tensor("t", (8,), 0, 16).to_bytes(data=64),
    "gap": head().tensor("a", (8,)).tensor("b", (8,), 0, 64).to_bytes(data=96),
    "overlap": head().tensor("a", (8,)).tensor("b", (8,), 0, 0).to_bytes(data=64),
    "offset overflow": head().tensor("a", (8,), 77, 2**64 - 32).to_bytes(data=64),
}


@pytest.mark.parametrize("raw", DAMAGED.values(), ids=DAMAGED.keys())
def test_damage_is_named(raw: bytes) -> None:
    assert fault_of(raw).kind is FileFault.DAMAGED


def test_counts_that_cannot_fit_are_refused_before_reading() -> None:
    error = fault_of(head(tensor_count=1000, entry_count=500).to_bytes())
    assert error.kind is FileFault.TRUNCATED


def test_newer_version_is_not_called_damage() -> None:
    for big_endian in (False, True):
        raw = head(version=4, big_endian=big_endian).to_bytes()
        assert fault_of(raw).kind is FileFault.UNSUPPORTED_VERSION


def test_tensor_of_unknown_type_is_readable() -> None:
    raw = head().tensor("a", (8,), 77, 0).tensor("b", (8,), 0, 320).to_bytes(data=352)
    header = parse(raw)
    assert [tensor.size_bytes for tensor in header.tensors] == [None, 32]
    assert header.tensors[0].type_name == "type 77"


def test_texts_that_are_not_utf8_are_shown_with_replacements() -> None:
    header = parse(head().entry("general.name", STRING, b"caf\xe9").to_bytes())
    assert header.text("general.name") == "caf\ufffd"


def test_long_text_is_not_decoded() -> None:
    header = parse(
        head().entry("blob", STRING, b"x" * (4 * 2**20 + 1)).entry("z", UINT8, 7).to_bytes()
    )
    blob = header.metadata["blob"]
    assert isinstance(blob, ArrayInfo)
    assert (blob.type, blob.length) == (ValueType.UINT8, 4 * 2**20 + 1)
    assert header.integer("z") == 7


def test_memory_for_decoded_arrays_is_bounded() -> None:
    header = head()
    for index in range(400):
        header.array(f"n{index}", UINT8, [1] * 1024)
    values = list(parse(header.to_bytes()).metadata.values())
    assert values[1] == (1,) * 1024
    assert isinstance(values[-1], ArrayInfo)


def test_strings_longer_than_a_window_are_passed_over() -> None:
    texts = ["x" * (3 * 2**20), "y", "z" * (2**20 - 8)]
    header = parse(head().array("texts", STRING, texts).entry("z", UINT8, 7).to_bytes())
    assert header.integer("z") == 7
    assert header.array_length("texts") == 3


FOREIGN = {
    "old ggml": (b"lmgg" + bytes(40), "GGML"),
    "ggjt": (b"tjgg" + bytes(40), "GGML"),
    "safetensors": (b'\x40\0\0\0\0\0\0\0{"__metadata__":{}}', "safetensors"),
    "pytorch zip": (b"PK\x03\x04" + bytes(40), "PyTorch"),
    "pickle": (b"\x80\x02}q\0.", "PyTorch"),
    "web page": (b"\n<!DOCTYPE html><html>", "web page"),
    "git lfs": (b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS"),
    "json": (b'{"error": "not found"}', "JSON"),
    "gzip": (b"\x1f\x8b\x08" + bytes(40), "archive"),
    "zeros": (bytes(5000), "zeros"),
    "text": (b"hello", "GGUF"),
    "one byte": (b"x", "GGUF"),
}


@pytest.mark.parametrize(("raw", "word"), FOREIGN.values(), ids=FOREIGN.keys())
def test_other_formats_are_recognised(raw: bytes, word: str) -> None:
    error = fault_of(raw)
    assert error.kind is FileFault.NOT_GGUF
    assert word in error.detail


NAMES = [
    "with space.gguf",
    "quote ' \" `.gguf",
    "emoji 😀👩‍👩‍👧.gguf",
    "模型.gguf",
    "модель.gguf",
    "e\u0301\u0323.gguf",
    "a" * 250 + ".gguf",
    "line\nbreak \x1b[31m.gguf",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_file_name(tmp_path: Path, name: str) -> None:
    if sys.platform == "win32" and any(c in name for c in '\n\x1b"'):
        pytest.skip("no such file name on Windows")
    path = tmp_path / name
    path.write_bytes(small_header().to_bytes(data=SMALL_DATA_BYTES))
    assert read_header(path).version == 3
    path.write_bytes(b"")
    with pytest.raises(GgufError) as caught:
        read_header(str(path))
    assert caught.value.kind is FileFault.EMPTY
    assert caught.value.title
    assert not any(c in caught.value.title for c in "\n\x1b")


@pytest.mark.skipif(sys.platform != "linux", reason="file names are text elsewhere")
def test_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.gguf"))
    path.write_bytes(small_header().to_bytes(data=SMALL_DATA_BYTES))
    assert read_header(path).version == 3
    path.write_bytes(b"GGU")
    with pytest.raises(GgufError) as caught:
        read_header(path)
    check_sentences(caught.value, "caf\\xe9.gguf")


def test_symbolic_link(tmp_path: Path) -> None:
    target = tmp_path / "target.gguf"
    target.write_bytes(small_header().to_bytes(data=SMALL_DATA_BYTES))
    link = tmp_path / "link.gguf"
    link.symlink_to(target)
    assert read_header(link).version == 3
    target.unlink()
    with pytest.raises(GgufError) as caught:
        read_header(link)
    assert caught.value.kind is FileFault.MISSING


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("nowhere/none.gguf", FileFault.MISSING),
        ("null\0byte.gguf", FileFault.MISSING),
        ("lone\ud800.gguf", FileFault.MISSING),
        ("", FileFault.MISSING),
        ("x" * 5000, FileFault.UNREADABLE),
        (".", FileFault.NOT_A_FILE),
        (os.devnull, FileFault.NOT_A_FILE),
    ],
)
def test_paths_without_a_file(path: str, kind: FileFault) -> None:
    with pytest.raises(GgufError) as caught:
        read_header(path)
    assert caught.value.kind is kind
    check_sentences(caught.value, "")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(GgufError) as caught:
        read_header(tmp_path / "pipe.gguf")
    assert caught.value.kind is FileFault.NOT_A_FILE


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.gguf"
    path.write_bytes(SMALL)

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(GgufError) as caught:
        read_header(path)
    error = check_sentences(caught.value, "secret.gguf")
    assert error.kind is FileFault.UNREADABLE
    assert "Permission denied" in error.detail
    assert error.hint.startswith("Allow")


class FailingDisk(io.BytesIO):
    """A stream whose disk is pulled out after the first window."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell():
            raise OSError(5, "Input/output error")
        return super().read(size)


def test_a_disk_that_fails_in_the_middle() -> None:
    raw = head().array("texts", STRING, ["x" * 100] * 20_000).to_bytes()
    with pytest.raises(GgufError) as caught:
        parse_header(FailingDisk(raw), "model.gguf", len(raw))
    assert check_sentences(caught.value, "model.gguf").kind is FileFault.UNREADABLE


def test_sparse_giant_is_refused_quickly(tmp_path: Path) -> None:
    path = tmp_path / "giant.gguf"
    path.write_bytes(head().raw_array("tokens", STRING, 4_000_000, b"").to_bytes())
    os.truncate(path, 2**36)
    header = read_header(path)
    assert header.array_length("tokens") == 4_000_000
    path.write_bytes(head(tensor_count=100_000).to_bytes())
    os.truncate(path, 2**36)
    with pytest.raises(GgufError) as caught:
        read_header(path)
    assert caught.value.kind is FileFault.DAMAGED


@pytest.mark.parametrize("big_endian", [False, True])
def test_whole_numbers_of_a_tensor_on_request(tmp_path: Path, big_endian: bool) -> None:
    raw = RawHeader(big_endian=big_endian).tensor("first", (8,)).tensor("ids", (3, 2), 27, 32)
    values = (0, -1, 2**63 - 1, -(2**63), 7, 8)
    path = tmp_path / "m.gguf"
    whole = raw.to_bytes(data=32 + 64)
    path.write_bytes(whole[:-64] + raw.pack("6q", *values) + bytes(16))
    header = read_header(path)
    first, ids = header.tensors
    assert read_int64_tensor(path, header, ids) == values
    with pytest.raises(ValueError, match="F32"):
        read_int64_tensor(path, header, first)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(GgufError) as caught:
        read_int64_tensor(path, header, ids)
    assert (caught.value.kind, caught.value.expected) == (FileFault.TRUNCATED, len(whole) - 16)
    path.unlink()
    with pytest.raises(GgufError) as caught:
        read_int64_tensor(path, header, ids)
    assert caught.value.kind is FileFault.MISSING


def test_arrays_on_request(tmp_path: Path) -> None:
    path = tmp_path / "arrays.gguf"
    numbers = list(range(2000))
    texts = [b"t%d" % n for n in range(100)] + [b"\xff"]
    raw = head(big_endian=True).array("n", INT32, numbers).array("f", FLOAT32, [0.5, 2.0])
    path.write_bytes(raw.array("t", STRING, texts).to_bytes())
    assert read_array(path, "n") == tuple(numbers)
    assert read_array(path, "f") == (0.5, 2.0)
    assert read_strings(path, "t") == (*(f"t{n}" for n in range(100)), "\udcff")
    for key in ("none", "n"):
        with pytest.raises(KeyError):
            read_strings(path, key)
    with pytest.raises(KeyError):
        read_array(path, "general.architecture")


def test_token_list_of_a_written_model(tmp_path: Path) -> None:
    path = build_tiny_llama(tmp_path / "tiny.gguf")
    assert read_strings(path, "tokenizer.ggml.tokens") == spm_vocabulary().tokens


def test_header_of_a_large_vocabulary(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    path = build_large_header(tmp_path / "large.gguf")
    start = time.perf_counter()
    header = read_header(path)
    record_property("seconds", time.perf_counter() - start)
    assert header.array_length("tokenizer.ggml.tokens") == 262_144
    assert header.array_length("tokenizer.ggml.merges") == 514_000
    assert header.integer("llama.context_length") == 131_072
    assert header.data_offset == header.file_size


def test_starter_header(starter: Path) -> None:
    header = read_header(starter)
    assert (header.version, len(header.metadata), len(header.tensors)) == (3, 33, 272)
    assert (header.data_offset, header.file_size) == (1_785_664, 98_362_432)
    last = header.tensors[-1]
    assert last.size_bytes is not None
    assert header.data_offset + last.offset + last.size_bytes <= header.file_size
    tokens = read_strings(starter, "tokenizer.ggml.tokens")
    assert len(tokens) == 49_152
    assert tokens[1] == "<|im_start|>"


def test_type_table_agrees_with_the_gguf_package() -> None:
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    for kind in GGMLQuantizationType:
        ours = GGML_TYPES[kind.value]
        assert ours.name == kind.name
        if kind is not GGMLQuantizationType.Q8_1:  # the package counts its two halves as floats
            assert (ours.block_elements, ours.block_bytes) == GGML_QUANT_SIZES[kind]


SMALL = small_header().to_bytes(data=SMALL_DATA_BYTES)
INTERESTING = [0, 1, 0x7F, 0x80, 0xFF, 4, 8, 9, 32]


def survive(raw: bytes, size: int | None = None) -> None:
    """Parse `raw`: a header or a GgufError with sentences, nothing else."""
    try:
        parse(raw, size)
    except GgufError as error:
        check_sentences(error, "model.gguf")


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(SMALL) - 1), st.sampled_from(INTERESTING) | st.integers(0, 255)
        ),
        min_size=1,
        max_size=8,
    )
)
def test_mutated_bytes_never_surprise(changes: list[tuple[int, int]]) -> None:
    raw = bytearray(SMALL)
    for place, byte in changes:
        raw[place] = byte
    survive(bytes(raw))


@settings(max_examples=200, deadline=None)
@example(b"")
@given(st.binary(max_size=200))
def test_any_bytes_never_surprise(tail: bytes) -> None:
    survive(tail)
    survive(b"GGUF\x03\0\0\0" + tail)
    survive(b"GGUF\0\0\0\x03" + tail)


@settings(max_examples=200, deadline=None)
@given(st.integers(8, len(SMALL) - 8), st.integers(0, 2**64 - 1))
def test_any_number_anywhere_never_surprises(place: int, number: int) -> None:
    survive(SMALL[:place] + number.to_bytes(8, "little") + SMALL[place + 8 :])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_hundred_thousand_mutations(starter: Path, tmp_path: Path) -> None:
    """Random bytes, numbers, cuts and copies over built and real headers; each case stays short."""
    tiny = build_tiny_llama(tmp_path / "tiny.gguf").read_bytes()
    real = starter.read_bytes()[: read_header(starter).data_offset]
    cases = [
        (SMALL, len(SMALL), len(SMALL), 120_000),
        (small_header(version=1, big_endian=True).to_bytes(data=SMALL_DATA_BYTES), 0, 0, 40_000),
        (tiny[:12_000], len(tiny), 12_000, 35_000),
        (real, starter.stat().st_size, 1200, 2_500),
        (real, starter.stat().st_size, len(real), 2_500),
    ]
    dice = random.Random(20_240_817)
    slowest = 0.0
    for original, size, reach, count in cases:
        size, reach = size or len(original), reach or len(original)
        for _ in range(count):
            raw = bytearray(original)
            claimed = size
            for _ in range(dice.randint(1, 6)):
                place = dice.randrange(reach)
                match dice.randrange(5):
                    case 0:
                        raw[place : place + 1] = bytes([dice.randrange(256)])
                    case 1:
                        raw[place : place + 1] = bytes([dice.choice(INTERESTING)])
                    case 2:
                        number = dice.getrandbits(dice.choice([8, 16, 32, 48, 64]))
                        raw[place : place + 8] = number.to_bytes(8, "little")
                    case 3:
                        source = dice.randrange(reach)
                        raw[place : place + 16] = raw[source : source + 16]
                    case 4:
                        claimed = dice.randrange(size + 1)
            start = time.perf_counter()
            survive(bytes(raw), claimed)
            slowest = max(slowest, time.perf_counter() - start)
    # A generous bound: a case that is slow by its nature takes minutes, not a moment.
    assert slowest < 10
