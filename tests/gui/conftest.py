"""The whole window for tests, always shut down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from gui.person import Person
from models.tiny_llama import build_tiny_llama
from models.vocabulary import CHATML


@pytest.fixture
def person(qtbot: QtBot, tmp_path: Path) -> Iterator[Person]:
    one = Person(qtbot, tmp_path / "data")
    yield one
    one.quit()


@pytest.fixture(scope="session")
def tiny_chat_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model with a chat template: it says nonsense, at once."""
    path = tmp_path_factory.mktemp("tiny") / "Tiny model.gguf"
    return build_tiny_llama(path, chat_template=CHATML, context_length=512, name="Tiny")
