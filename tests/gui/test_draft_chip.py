"""The draft chip: exactly one of three states, in words that are never lost."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from slipstream.ui.draft_chip import DraftChip
from slipstream.ui.theme import DARK, LIGHT, Tokens, contrast_ratio, mix


@pytest.fixture
def chip(qtbot: QtBot) -> DraftChip:
    result = DraftChip()
    qtbot.addWidget(result)
    result.resize(248, 26)
    result.show()
    return result


def test_states_in_words_with_an_icon_of_their_own(chip: DraftChip) -> None:
    assert chip.objectName() == "draft_chip"
    states = [(chip.text, chip.icon_name)]
    chip.show_active("prompt lookup", "")
    states.append((chip.text, chip.icon_name))
    chip.show_active("EAGLE-3", "SmolLM2 head")
    states.append((chip.text, chip.icon_name))
    chip.show_off_because("the vocabularies differ.")
    states.append((chip.text, chip.icon_name))
    chip.show_off()
    states.append((chip.text, chip.icon_name))
    assert states == [
        ("Draft off", "draft-off"),
        ("Draft active: prompt lookup", "draft"),
        ("Draft active: EAGLE-3, SmolLM2 head", "draft"),
        ("Draft off, because the vocabularies differ", "warning"),
        ("Draft off", "draft-off"),
    ]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("The file is gone.", "the file is gone"),
        ("Its vocabulary differs", "its vocabulary differs"),
        ("Built-in drafting needs heads.", "built-in drafting needs heads"),
        ("EAGLE-3 needs another layer", "EAGLE-3 needs another layer"),
        ("Llama 3 is no draft", "Llama 3 is no draft"),
    ],
)
def test_reason_reads_on_after_because(chip: DraftChip, reason: str, words: str) -> None:
    chip.show_off_because(reason)
    assert chip.text == f"Draft off, because {words}"


def test_long_reason_wraps_then_elides_and_the_tooltip_has_it_all(chip: DraftChip) -> None:
    assert chip.lines(248) == ["Draft off"]
    reason = "the file <odd> could not be opened: /models/" + "verylongfoldername" * 20 + "/end"
    chip.show_off_because(reason)
    lines = chip.lines(248)
    assert len(lines) == 4
    assert lines[-1].endswith("…")
    assert chip.heightForWidth(248) > chip.heightForWidth(4000)
    assert "&lt;odd>" in chip.toolTip()
    assert chip.toolTip().endswith("/end</qt>")
    assert chip.accessibleName() == chip.text
    assert chip.minimumSizeHint().width() <= 248


def test_words_that_fit_are_all_shown(chip: DraftChip) -> None:
    chip.show_active("draft model", "DeepSeek-R1-Distill-Qwen-1.5B")
    assert " ".join(chip.lines(248)).replace("- ", "-") == chip.text


@pytest.mark.parametrize("tokens", [LIGHT, DARK], ids=lambda tokens: tokens.name)
def test_contrast_on_the_tinted_grounds(tokens: Tokens) -> None:
    for colour in (tokens.good, tokens.warn):
        ground = mix(colour, tokens.page, 0.13)
        assert contrast_ratio(tokens.text, ground) >= 4.5
        assert contrast_ratio(colour, ground) >= 3
    assert contrast_ratio(tokens.muted, tokens.raised) >= 3
