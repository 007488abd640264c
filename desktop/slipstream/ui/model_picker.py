"""The model picker: which model file is loaded, how loading goes, and a menu to choose another.

It shows entries it is given; it neither looks for files nor reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from PySide6.QtCore import (
    QDir,
    QModelIndex,
    QPoint,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
    Slot,
)
from PySide6.QtGui import QColor, QFontMetrics, QGuiApplication, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QProgressBar,
    QSizePolicy,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from slipstream.ui.elided_label import ElidedLabel
from slipstream.ui.icons import icon_pixmap, set_icon
from slipstream.ui.painting import chevron, focus_ring, rounded
from slipstream.ui.section_list import (
    ListRow,
    SectionListDelegate,
    SectionListModel,
    SectionListView,
)
from slipstream.ui.theme import (
    CAPTION_PX,
    CONTROL_PX,
    SPACE_M,
    SPACE_S,
    SPACE_XS,
    interface_font,
    mix,
    set_kind,
    theme,
)

BROWSE = ":browse"  # the key of the menu's last row; no path begins like this
_MENU_WIDTH, _MENU_HEIGHT = 320, 420


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model as the picker shows it.

    `caption` is a short line such as “Q4_1 · 92 MB · 8k context”, `details` what stands below the
    control (“llama · Apache-2.0”), `note` why an unavailable one cannot be chosen.
    """

    path: str
    name: str
    caption: str = ""
    details: str = ""
    available: bool = True
    note: str = ""


class PickerButton(QAbstractButton):
    """Two lines and a chevron: what is chosen, and a word about it."""

    def __init__(self, role: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._role = role
        self._caption = ""
        self._icon_name = "model"
        self._icon_role = "muted"
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @property
    def caption(self) -> str:
        """The second line."""
        return self._caption

    def show_words(self, name: str, caption: str, tooltip: str = "", failed: bool = False) -> None:
        """Shows a name, elided in the middle if need be, and a caption below it."""
        self.setText(name)
        self._caption = caption
        self._icon_name, self._icon_role = ("error", "bad") if failed else ("model", "muted")
        self.setToolTip(tooltip or name)
        self.setAccessibleName(f"{self._role}: {name}")
        self.setAccessibleDescription(f"{caption}. Opens the list of models.")
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(240, 52)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 52)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme().current()
        painter = QPainter(self)
        area = QRectF(self.rect())
        hovered = self.underMouse() or self.isDown()
        ground = mix(tokens.text, tokens.surface, 0.06) if hovered else tokens.surface
        rounded(painter, area, QColor(ground), QColor(tokens.control_border))
        middle = self.height() // 2
        picture = icon_pixmap(self._icon_name, self._icon_role, 18, self.devicePixelRatioF())
        painter.drawPixmap(SPACE_M, middle - 9, picture)
        text = QRect(SPACE_M + 18 + SPACE_S, 0, self.width() - 3 * SPACE_M - 18 - SPACE_S - 8, 0)
        upper = QRect(text.left(), 8, text.width(), 18)
        lower = QRect(text.left(), 27, text.width(), 16)
        font = interface_font(CONTROL_PX)
        font.setWeight(font.Weight.DemiBold)
        painter.setFont(font)
        painter.setPen(QColor(tokens.text))
        name = QFontMetrics(font).elidedText(
            self.text(), Qt.TextElideMode.ElideMiddle, upper.width()
        )
        painter.drawText(upper, _LEFT, name)
        font = interface_font(CAPTION_PX)
        painter.setFont(font)
        painter.setPen(QColor(tokens.bad if self._icon_role == "bad" else tokens.muted))
        caption = QFontMetrics(font).elidedText(
            self._caption, Qt.TextElideMode.ElideRight, lower.width()
        )
        painter.drawText(lower, _LEFT, caption)
        chevron(painter, QPointF(self.width() - SPACE_M - 4, middle), QColor(tokens.muted), True)
        if self.hasFocus():
            focus_ring(painter, area, tokens)
        painter.end()


_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class ModelMenu(QFrame):
    """The list that opens below the picker. `chosen` carries a row's key."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setObjectName("model_menu")
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)  # round corners
        self.list = SectionListView(SectionListDelegate(elide=Qt.TextElideMode.ElideMiddle), self)
        self.list.setObjectName("model_list")
        self.list.setAccessibleName("Models")
        self.list.setToolTip("Enter or click chooses a model")
        self.rows = SectionListModel(self)
        self.list.setModel(self.rows)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_XS, SPACE_XS, SPACE_XS, SPACE_XS)
        layout.addWidget(self.list)
        self.list.clicked.connect(self._on_clicked)
        self.setFocusProxy(self.list)

    def open_below(self, anchor: QWidget, marked: str) -> None:
        """Shows the menu below a widget, or above it where the screen ends."""
        heights = [self.list.sizeHintForRow(row) for row in range(self.rows.rowCount())]
        width = max(anchor.width(), _MENU_WIDTH)
        height = min(sum(heights) + 2 * SPACE_XS + 4, _MENU_HEIGHT)
        spot = anchor.mapToGlobal(QPoint(0, anchor.height() + SPACE_XS))
        screen = anchor.screen() or QGuiApplication.primaryScreen()
        free = screen.availableGeometry()
        x = max(min(spot.x(), free.right() - width), free.left())
        y = spot.y()
        if y + height > free.bottom():
            y = max(anchor.mapToGlobal(QPoint(0, 0)).y() - height - SPACE_XS, free.top())
        self.setGeometry(x, y, width, height)
        self.list.setCurrentIndex(self._first(marked))
        self.show()
        self.list.setFocus()

    def _first(self, marked: str) -> QModelIndex:
        index = self.rows.index_of(marked)
        if index.isValid() and self.rows.rows[index.row()].enabled:
            return index
        usable = (row.key for row in self.rows.rows if row.enabled and not row.header)
        return self.rows.index_of(next(usable, BROWSE))

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme().current()
        painter = QPainter(self)
        ground, line = QColor(tokens.surface), QColor(tokens.control_border)
        rounded(painter, QRectF(self.rect()), ground, line)
        painter.end()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self._on_clicked(self.list.currentIndex())
        else:
            super().keyPressEvent(event)

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        row = self.rows.row_at(index)
        if row is not None and row.enabled and not row.header:
            self.close()
            self.chosen.emit(row.key)


class ModelPicker(QWidget):
    """Shows the chosen model and lets a person choose another.

    `model_chosen` carries a path and changes nothing here: what is loaded is shown by
    `show_loading` and `show_model` once it is so.
    """

    model_chosen = Signal(str)
    cancel_requested = Signal()

    def __init__(
        self, role: str = "Model", name: str = "target_picker", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._current: ModelEntry | None = None
        self._folder = ""
        self._menu = ModelMenu(self)
        self._menu.chosen.connect(self._on_chosen)
        self.button = PickerButton(role, self)
        self.button.setObjectName(f"{name}_button")
        self.button.clicked.connect(self.open_menu)
        self.facts = ElidedLabel(self)
        self.facts.setObjectName(f"{name}_facts")
        set_kind(self.facts, "caption")
        self._below = QStackedWidget(self)
        self._below.addWidget(self.facts)
        self._below.addWidget(self._make_progress(name))
        self._below.setFixedHeight(28)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self.button)
        layout.addWidget(self._below)
        self.set_entries((), None)
        self.show_none()

    def _make_progress(self, name: str) -> QWidget:
        box = QWidget(self)
        self.progress = QProgressBar(box)
        self.progress.setObjectName(f"{name}_progress")
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName("Loading the model")
        self.progress.setToolTip("How much of the model is loaded")
        self.cancel_button = QToolButton(box)
        self.cancel_button.setObjectName(f"{name}_cancel")
        set_icon(self.cancel_button, "close")
        self.cancel_button.setText("Cancel")
        self.cancel_button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.cancel_button.setAccessibleName("Cancel loading")
        self.cancel_button.setToolTip("Stop loading this model")
        self.cancel_button.clicked.connect(self.cancel_requested)
        line = QHBoxLayout(box)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(SPACE_S)
        line.addWidget(self.progress, 1)
        line.addWidget(self.cancel_button)
        return box

    def set_entries(self, recent: Sequence[ModelEntry], starter: ModelEntry | None) -> None:
        """What the menu offers: recent files, newest first, and the starter model."""
        rows: list[ListRow] = []
        others = [entry for entry in recent if starter is None or entry.path != starter.path]
        if others:
            rows.append(ListRow(key="", title="Recent", header=True))
            rows += [_row(entry, with_folder=True) for entry in others]
        if starter is not None:
            rows.append(ListRow(key="", title="Starter model", header=True))
            rows.append(_row(starter, with_folder=False))
        if rows:
            rows.append(ListRow(key="", title="On this computer", header=True))
        rows.append(
            ListRow(
                key=BROWSE,
                title="Browse…",
                tooltip="Choose a .gguf file on this computer",
                icon="folder-open",
            )
        )
        self._menu.rows.set_rows(rows)

    @property
    def menu(self) -> ModelMenu:
        """The list of models."""
        return self._menu

    def show_model(self, entry: ModelEntry) -> None:
        """A model is loaded."""
        self._current = entry
        self.button.show_words(entry.name, entry.caption, f"{entry.name}\n{entry.path}")
        self._show_facts(entry.details)

    def show_none(self) -> None:
        """No model is loaded."""
        self._current = None
        self.button.show_words("Choose a model", "No model loaded", "Choose a model to chat with")
        self._show_facts("Choose one or drop a .gguf file here.")

    def show_loading(self, name: str, fraction: float | None) -> None:
        """A model is being loaded; `fraction` from 0 to 1, or None while it is unknown."""
        if fraction is None:
            self.progress.setRange(0, 0)
            caption = "Loading…"
        else:
            percent = min(max(int(fraction * 100), 0), 100)
            self.progress.setRange(0, 100)
            self.progress.setValue(percent)
            caption = f"Loading… {percent} %"
        self.button.show_words(name, caption)
        self._below.setCurrentIndex(1)

    def show_failed(self, name: str) -> None:
        """A model could not be loaded; the reason stands in the notice strip."""
        self._current = None
        self.button.show_words(name, "Could not be loaded", failed=True)
        self._show_facts("Choose another model.")

    @Slot()
    def open_menu(self) -> None:
        """Opens the list of models."""
        self._menu.open_below(self.button, self._current.path if self._current else "")

    @Slot()
    def browse(self) -> None:
        """Opens a file dialog for a .gguf file."""
        dialog = QFileDialog(self, "Choose a model", self._start_folder())
        dialog.setObjectName("model_dialog")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters(["GGUF models (*.gguf *.GGUF)", "All files (*)"])
        dialog.fileSelected.connect(self._on_file_selected)
        dialog.open()

    def _start_folder(self) -> str:
        if self._folder:
            return self._folder
        path = self._current.path if self._current else ""
        return str(PurePath(path).parent) if path else QDir.homePath()

    def _show_facts(self, words: str) -> None:
        self.facts.setText(words)
        self.facts.setToolTip(words)
        self._below.setCurrentIndex(0)

    @Slot(str)
    def _on_chosen(self, key: str) -> None:
        self.button.setFocus()
        if key == BROWSE:
            self.browse()
        else:
            self.model_chosen.emit(key)

    @Slot(str)
    def _on_file_selected(self, path: str) -> None:
        native = QDir.toNativeSeparators(path)
        self._folder = str(PurePath(native).parent)
        self.model_chosen.emit(native)


def _row(entry: ModelEntry, with_folder: bool) -> ListRow:
    if entry.available:
        folder = PurePath(entry.path).parent.name if with_folder else ""
        parts = (entry.caption, folder)
    else:
        parts = (entry.note or "file not found", str(PurePath(entry.path).parent))
    return ListRow(
        key=entry.path,
        title=entry.name,
        caption=" · ".join(part for part in parts if part),
        tooltip="\n".join(part for part in (entry.name, entry.path, entry.details) if part),
        enabled=entry.available,
    )
