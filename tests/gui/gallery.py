"""Renders widgets in light and dark to PNG files, to be looked at: `gallery.py OUTDIR`."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFormLayout,
    QGroupBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QRadioButton,
    QSlider,
    QSpinBox,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from slipstream.chat.records import (
    AnswerRecord,
    FinishReason,
    GenerationStatistics,
    Message,
    Role,
)
from slipstream.engine.events import TextKind, TextPiece
from slipstream.errors import ModelFileError
from slipstream.resources import resource_path
from slipstream.ui.composer import Composer
from slipstream.ui.icons import set_icon
from slipstream.ui.notice_strip import NoticeStrip, Severity
from slipstream.ui.theme import apply_theme, set_kind
from slipstream.ui.transcript.view import TranscriptView

_ANSWER = """A **draft** proposes tokens, and the *target* checks them [in one pass](https://example.org).

## How it works

1. The draft writes `k` tokens ahead.
2. The target evaluates all of them at once:
   - accepted tokens are kept,
   - the first rejected one is replaced.
3. Nothing about the answer changes.

> The answer is the target's own, only sooner.
> It costs memory for a second model.

```python
def verify(logits: list[float], draft: list[int]) -> int:
    for position, token in enumerate(draft):
        if argmax(logits[position]) != token:
            return position
    return len(draft)
```

| Drafter | Accepted | Speed |
|:--|--:|:-:|
| none | – | 31.2 tok/s |
| EAGLE-3 | 62 % | **41.8 tok/s** |

---

مرحبا بالعالم، هذا نص من اليمين إلى اليسار.

That is ~~magic~~ arithmetic. ![a diagram](file:///etc/passwd) <b>not bold</b>
"""


def statistics(**changes: object) -> GenerationStatistics:
    """Plausible numbers."""
    values: dict[str, object] = {
        "prompt_tokens": 128,
        "cached_prompt_tokens": 96,
        "generated_tokens": 212,
        "prefill_seconds": 0.103,
        "time_to_first_token_seconds": 0.41,
        "decode_seconds": 5.05,
        "reasoning_seconds": 3.1,
        "reasoning_tokens": 84,
    }
    return GenerationStatistics(**{**values, **changes})  # type: ignore[arg-type]


def conversation() -> list[Message]:
    """Two questions and a rich answer."""
    now = datetime.now(UTC)
    record = AnswerRecord("SmolLM2 135M · Q4_1", "", FinishReason.EOG, 1, statistics())
    return [
        Message("1", Role.USER, "How does speculative decoding work?\n\nKeep it short.", now),
        Message("2", Role.ASSISTANT, _ANSWER, now, "They want it *short*.\n\nThree steps.", record),
        Message("3", Role.USER, "Thanks! And what does it cost?", now),
    ]


def chat(width: int, height: int, part: str) -> QWidget:
    """Notice, transcript and composer, one above the other as in the window."""
    page = QWidget()
    page.resize(width, height)
    column = QVBoxLayout(page)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(0)
    strip, view, composer = NoticeStrip(), TranscriptView(), Composer()
    column.addWidget(strip)
    column.addWidget(view, 1)
    column.addWidget(composer)
    page.show()
    view.set_empty_state("Ready when you are", "SmolLM2 135M is loaded. Ask it something below.")
    if part == "empty":
        composer.set_ready(False, "Choose a model first. It opens from the panel on the right.")
        strip.show_notice("The context was trimmed", hint="The oldest two turns were left out.")
    elif part == "top":
        view.set_conversation(conversation())
        view._toggle_fold(1)
        view.verticalScrollBar().setValue(0)
        composer.set_text("A message that is long enough to need more than one line. " * 4)
        composer.field.setFocus()
    elif part == "end":
        view.set_conversation(conversation())
        view.begin_answer("SmolLM2 135M · Q4_1")
        view.set_progress(300, 512)
        composer.set_answering(True)
        strip.show_error(
            ModelFileError(
                "This model file is not whole",
                "/home/someone/models/a-rather-long-folder-name/TinyLlama-1.1B-Q4_K_M.gguf "
                "should have 668,788,096 bytes and has 1,048,576.",
                "Download it again, or choose another file.",
            )
        )
        strip.details_button.click()
    elif part == "live":
        view.set_conversation(conversation())
        view.begin_answer("SmolLM2 135M · Q4_1")
        view.append_run([TextPiece(TextKind.REASONING, "Cost means memory here.")])
        view.append_run([TextPiece(TextKind.ANSWER, "It costs **memory**:\n\n```text\ndraft 92")])
        composer.set_answering(True)
        strip.show_notice("The draft was slower", "", "It is off now.", Severity.WARNING)
    return page


def controls() -> QWidget:
    """Every standard control in its states."""
    page = QWidget()
    page.resize(720, 660)
    form = QFormLayout(page)
    form.setContentsMargins(24, 24, 24, 24)
    form.setSpacing(12)
    for kind in ("primary", "secondary", "ghost"):
        row = QHBoxLayout()
        for words, enabled in (("Load model", True), ("Disabled", False)):
            button = QPushButton(words)
            button.setEnabled(enabled)
            set_kind(button, kind)
            row.addWidget(button)
        tool = QToolButton()
        set_kind(tool, kind)
        set_icon(tool, "search", "on_accent" if kind == "primary" else "text")
        row.addWidget(tool)
        row.addStretch(1)
        form.addRow(QLabel(kind), row)
    line = QLineEdit()
    line.setPlaceholderText("Search chats")
    box = QComboBox()
    box.addItems(["SmolLM2 135M · Q4_1", "Qwen3 0.6B · Q8_0"])
    off = QComboBox()
    off.addItem("Disabled")
    off.setEnabled(False)
    spin, real = QSpinBox(), QDoubleSpinBox()
    slider = QSlider(Qt.Orientation.Horizontal)
    slider.setValue(40)
    off_slider = QSlider(Qt.Orientation.Horizontal)
    off_slider.setValue(60)
    off_slider.setEnabled(False)
    check, checked, radio = QCheckBox("Off"), QCheckBox("On"), QRadioButton("Radio")
    checked.setChecked(True)
    radio.setChecked(True)
    checks = QHBoxLayout()
    for widget in (check, checked, radio):
        checks.addWidget(widget)
    checks.addStretch(1)
    numbers = QHBoxLayout()
    numbers.addWidget(spin)
    numbers.addWidget(real)
    progress = QProgressBar()
    progress.setValue(55)
    progress.setTextVisible(False)
    chats = QListWidget()
    chats.addItems([f"Chat number {number}" for number in range(20)])
    group = QGroupBox("Sampling")
    inner = QVBoxLayout(group)
    inner.addWidget(QPlainTextEdit("System prompt"))
    figure, caption = QLabel("41.8 tok/s"), QLabel("1.34× on this computer")
    set_kind(figure, "figure")
    set_kind(caption, "caption")
    for words, item in (
        ("Line", line),
        ("Combo", box),
        ("", off),
        ("Numbers", numbers),
        ("Slider", slider),
        ("", off_slider),
        ("Checks", checks),
        ("Progress", progress),
        ("List", chats),
        ("Group", group),
        ("Figure", figure),
        ("Caption", caption),
    ):
        form.addRow(words, item)
    page.show()
    chats.setCurrentRow(1)
    line.setFocus()
    return page


def icons() -> QWidget:
    """All icons with their names."""
    page = QWidget()
    page.resize(560, 360)
    column = QVBoxLayout(page)
    names = sorted(path.stem for path in resource_path("icons").glob("*.svg"))
    for start in range(0, len(names), 6):
        row = QHBoxLayout()
        for name in names[start : start + 6]:
            button = QToolButton()
            button.setText(name)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
            set_icon(button, name)
            button.setIconSize(button.iconSize() * 1.5)
            row.addWidget(button)
        column.addLayout(row)
    page.show()
    return page


def main(folder: Path) -> None:
    """Write every picture into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    app = QApplication.instance() or QApplication([])
    assert isinstance(app, QApplication)
    for scheme in ("light", "dark"):
        apply_theme(app, scheme)
        pictures = {
            "top": chat(980, 1240, "top"),
            "end": chat(980, 700, "end"),
            "live": chat(980, 700, "live"),
            "empty": chat(760, 520, "empty"),
            "narrow-top": chat(400, 900, "top"),
            "narrow-end": chat(400, 700, "end"),
            "controls": controls(),
            "icons": icons(),
        }
        for name, widget in pictures.items():
            widget.activateWindow()
            app.processEvents()
            app.processEvents()
            widget.grab().save(str(folder / f"{name}-{scheme}.png"))
            widget.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
