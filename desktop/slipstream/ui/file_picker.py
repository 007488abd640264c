"""What the model picker and the draft picker share: the button, the menu below it, the file dialog.

They show rows they are given; they neither look for files nor read them.
"""

from __future__ import annotations

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
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from slipstream.ui.icons import icon_pixmap
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
    theme,
)
from slipstream.ui.wrapping import fitting_facts

BROWSE = ":browse"  # the key of the menu's last row; no path begins like this
_MENU_HEIGHT = 480
_WORDS_LEFT = SPACE_M + 18 + SPACE_S  # of the button, beside its icon


def browse_row() -> ListRow:
    """The row that opens the file dialog."""
    return ListRow(
        key=BROWSE,
        title="Browse…",
        tooltip="Choose a .gguf file on this computer",
        icon="folder-open",
    )


class PickerButton(QAbstractButton):
    """Two lines and a chevron: what is chosen, and a word about it."""

    def __init__(self, role: str, noun: str = "model", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._role = role
        self._noun = noun
        self._caption = ""
        self._icon_name = noun
        self._icon_role = "muted"
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @property
    def caption(self) -> str:
        """The second line."""
        return self._caption

    @property
    def words_width(self) -> int:
        """The room for each of the two lines, in pixels."""
        return self.width() - _WORDS_LEFT - 2 * SPACE_M - 8

    def show_words(self, name: str, caption: str, tooltip: str = "", failed: bool = False) -> None:
        """Shows a name, elided in the middle if need be, and a caption below it."""
        self.setText(name)
        self._caption = caption
        self._icon_name, self._icon_role = ("error", "bad") if failed else (self._noun, "muted")
        self.setToolTip(tooltip or name)
        self.setAccessibleName(f"{self._role}: {name}")
        self.setAccessibleDescription(f"{caption}. Opens the list of {self._noun}s.")
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
        upper = QRect(_WORDS_LEFT, 8, self.words_width, 18)
        lower = QRect(_WORDS_LEFT, 27, self.words_width, 16)
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
        caption = fitting_facts(self._caption, QFontMetrics(font), lower.width())
        painter.drawText(lower, _LEFT, caption)
        chevron(painter, QPointF(self.width() - SPACE_M - 4, middle), QColor(tokens.muted), True)
        if self.hasFocus():
            focus_ring(painter, area, tokens)
        painter.end()


_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class PickerMenu(QFrame):
    """The list that opens below the picker. `chosen` carries a row's key."""

    chosen = Signal(str)

    def __init__(self, noun: str, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setObjectName(f"{noun}_menu")
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)  # round corners
        self.list = SectionListView(SectionListDelegate(elide=Qt.TextElideMode.ElideMiddle), self)
        self.list.setObjectName(f"{noun}_list")
        self.list.setResizeMode(SectionListView.ResizeMode.Adjust)  # notes break anew
        self.list.setAccessibleName(f"{noun.capitalize()}s")
        self.list.setToolTip(f"Enter or click chooses a {noun}")
        self.rows = SectionListModel(self)
        self.list.setModel(self.rows)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_XS, SPACE_XS, SPACE_XS, SPACE_XS)
        layout.addWidget(self.list)
        self.list.clicked.connect(self._on_clicked)
        self.setFocusProxy(self.list)

    def open_below(self, anchor: QWidget, marked: str) -> None:
        """Shows the menu below a widget and as wide; above it where there is more room."""
        screen = anchor.screen() or QGuiApplication.primaryScreen()
        free = screen.availableGeometry()
        top = anchor.mapToGlobal(QPoint(0, 0))
        below = free.bottom() - (top.y() + anchor.height() + SPACE_XS)
        above = top.y() - SPACE_XS - free.top()
        width = anchor.width()
        wanted = min(self._whole_height(width), _MENU_HEIGHT)
        is_below = wanted <= below or below >= above
        height = min(wanted, max(below if is_below else above, 0))
        y = top.y() + (anchor.height() + SPACE_XS if is_below else -SPACE_XS - height)
        self.setGeometry(top.x(), y, width, height)
        self.list.setCurrentIndex(self._first(marked))
        self.show()
        self.list.setFocus()

    def _whole_height(self, width: int) -> int:
        """How high the menu is with all its rows at a width."""
        self.resize(width, _MENU_HEIGHT)
        layout = self.layout()
        assert layout is not None
        layout.activate()
        heights = [self.list.sizeHintForRow(row) for row in range(self.rows.rowCount())]
        return sum(heights) + 2 * SPACE_XS + 4

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


class FilePicker(QWidget):
    """A button, its menu and a file dialog. `noun` is what is picked: "model" or "draft".

    What a person picked goes to `choose`; the key of the row in force comes from `current_key`.
    """

    def __init__(self, role: str, noun: str, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._noun = noun
        self._folder = ""
        self._menu = PickerMenu(noun, self)
        self._menu.chosen.connect(self._on_chosen)
        self.button = PickerButton(role, noun, self)
        self.button.setObjectName(f"{name}_button")
        self.button.clicked.connect(self.open_menu)

    @property
    def menu(self) -> PickerMenu:
        """The list that the button opens."""
        return self._menu

    def choose(self, key: str) -> None:
        """A person picked a row or, in the dialog, a file."""
        raise NotImplementedError

    def current_key(self) -> str:
        """The key of the row in force; empty for none."""
        raise NotImplementedError

    def current_path(self) -> str:
        """The file in force; empty for none."""
        raise NotImplementedError

    @Slot()
    def open_menu(self) -> None:
        """Opens the list."""
        self._menu.open_below(self.button, self.current_key())

    @Slot()
    def browse(self) -> None:
        """Opens a file dialog for a .gguf file."""
        dialog = QFileDialog(self, f"Choose a {self._noun}", self._start_folder())
        dialog.setObjectName(f"{self._noun}_dialog")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters(["GGUF models (*.gguf *.GGUF)", "All files (*)"])
        dialog.fileSelected.connect(self._on_file_selected)
        dialog.open()

    def _start_folder(self) -> str:
        if self._folder:
            return self._folder
        path = self.current_path()
        return str(PurePath(path).parent) if path else QDir.homePath()

    @Slot(str)
    def _on_chosen(self, key: str) -> None:
        self.button.setFocus()
        if key == BROWSE:
            self.browse()
        else:
            self.choose(key)

    @Slot(str)
    def _on_file_selected(self, path: str) -> None:
        native = QDir.toNativeSeparators(path)
        self._folder = str(PurePath(native).parent)
        self.choose(native)
