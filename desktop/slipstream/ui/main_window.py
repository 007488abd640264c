"""The window: chats on the left, the conversation in the middle, the cockpit on the right.

Arranges the parts and takes files dropped on it; what the parts do together is the controller's.
"""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QEvent, QMimeData, QObject, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QAction,
    QActionGroup,
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QKeySequence,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMainWindow,
    QMenu,
    QSizePolicy,
    QSplitter,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from slipstream.ui.chat_sidebar import ChatSidebar
from slipstream.ui.cockpit import WIDTH as COCKPIT_WIDTH
from slipstream.ui.cockpit import Cockpit
from slipstream.ui.composer import Composer
from slipstream.ui.elided_label import ElidedLabel
from slipstream.ui.icons import set_icon
from slipstream.ui.notice_strip import NoticeStrip
from slipstream.ui.setting_row import wrapped
from slipstream.ui.theme import SPACE_L, SPACE_S, set_kind, theme
from slipstream.ui.transcript.view import TranscriptView

_SIDEBAR_WIDTH = 232
_CENTRE_MINIMUM = 340
_THEMES = {"system": "Follow the system", "light": "Light", "dark": "Dark"}


class MainWindow(QMainWindow):
    """Holds every part by name; `closing` is emitted once, when the person closes it."""

    closing = Signal()
    model_dropped = Signal(str)
    theme_chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("main_window")
        self.setWindowTitle("Slipstream")
        self.setMinimumSize(480, 400)
        self.resize(1200, 780)
        self.setAcceptDrops(True)
        self._closed = False
        self.sidebar = ChatSidebar()
        self.sidebar.setMinimumWidth(180)
        self.cockpit = Cockpit()
        self._wanted: list[QWidget] = [self.cockpit, self.sidebar]  # first what was asked for last
        self.transcript = TranscriptView()
        self.composer = Composer()
        self.composer.field.installEventFilter(self)
        self.composer.field.viewport().installEventFilter(self)
        self.notice_strip = NoticeStrip()
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._splitter.setObjectName("columns")
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setHandleWidth(1)
        for part in (self.sidebar, self._make_centre(), self.cockpit):
            self._splitter.addWidget(part)
        self._splitter.setStretchFactor(1, 1)
        self._splitter.setSizes([_SIDEBAR_WIDTH, 1200, COCKPIT_WIDTH])
        self.setCentralWidget(self._splitter)
        theme().changed.connect(self._mark_theme)
        self._mark_theme()

    def _make_centre(self) -> QWidget:
        centre = QWidget()
        centre.setObjectName("centre")
        centre.setMinimumWidth(_CENTRE_MINIMUM)
        layout = QVBoxLayout(centre)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._make_header())
        layout.addWidget(self.notice_strip)
        layout.addWidget(self.transcript, 1)
        layout.addWidget(self.composer)
        return centre

    def _make_header(self) -> QWidget:
        self.sidebar_button = self._make_toggle("sidebar_button", "panel-left", "Chats", "Ctrl+B")
        self.sidebar_button.toggled.connect(self._toggle_sidebar)
        self.cockpit_button = self._make_toggle(
            "cockpit_button", "panel-right", "Model and settings", "Ctrl+Shift+B"
        )
        self.cockpit_button.toggled.connect(self._toggle_cockpit)
        self._title = ElidedLabel()
        self._title.setObjectName("chat_title")
        self._title.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        set_kind(self._title, "heading")
        header = QWidget()
        header.setObjectName("chat_header")
        row = QHBoxLayout(header)
        row.setContentsMargins(SPACE_L, SPACE_S, SPACE_L, SPACE_S)
        row.setSpacing(SPACE_S)
        row.addWidget(self.sidebar_button)
        row.addWidget(self._title, 1)
        row.addWidget(self._make_theme_button())
        row.addWidget(self.cockpit_button)
        return header

    def _make_toggle(self, name: str, icon: str, words: str, keys: str) -> QToolButton:
        button = QToolButton()
        button.setObjectName(name)
        button.setCheckable(True)
        button.setChecked(True)
        button.setIconSize(QSize(18, 18))
        button.setShortcut(keys)
        button.setAccessibleName(words)
        button.setToolTip(f"{words} ({button.shortcut().toString()})")
        set_icon(button, icon, "muted")
        return button

    def _make_theme_button(self) -> QToolButton:
        self._theme_button = button = QToolButton()
        button.setObjectName("theme_button")
        button.setIconSize(QSize(18, 18))
        button.setAccessibleName("Appearance")
        button.setToolTip("Appearance: light, dark or as the system, and the size of text")
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(button)
        self._theme_actions = QActionGroup(menu)
        for preference, words in _THEMES.items():
            action = QAction(words, menu)
            action.setData(preference)
            action.setCheckable(True)
            self._theme_actions.addAction(action)
            menu.addAction(action)
        self._theme_actions.triggered.connect(self._choose_theme)
        menu.addSeparator()
        standard = QKeySequence.StandardKey
        zoom_in = [*QKeySequence.keyBindings(standard.ZoomIn), QKeySequence("Ctrl+=")]
        for words, keys, step in (
            ("Larger text", zoom_in, 1),
            ("Smaller text", QKeySequence.keyBindings(standard.ZoomOut), -1),
            ("Usual text size", [QKeySequence("Ctrl+0")], 0),
        ):
            action = QAction(words, menu)
            action.setShortcuts(keys)
            action.setData(step)
            action.triggered.connect(self._change_text_size)
            menu.addAction(action)
            self.addAction(action)  # the keys count with the menu closed as well
        button.setMenu(menu)
        return button

    def set_chat_title(self, title: str) -> None:
        """Name the chat that is shown."""
        self._title.setText(title)
        self._title.setToolTip(wrapped(title) if title else "")
        self.setWindowTitle(f"{title} – Slipstream" if title else "Slipstream")

    def save_arrangement(self) -> tuple[str, str]:
        """Window geometry and column widths, as base64 text."""
        geometry = bytes(self.saveGeometry().toBase64().data()).decode()
        return geometry, bytes(self._splitter.saveState().toBase64().data()).decode()

    def restore_arrangement(self, geometry: str, columns: str) -> None:
        """Arrange the window as it was saved; unusable text changes nothing."""
        self.restoreGeometry(QByteArray.fromBase64(geometry.encode("ascii", "replace")))
        self._splitter.restoreState(QByteArray.fromBase64(columns.encode("ascii", "replace")))

    @Slot(bool)
    def _toggle_sidebar(self, shown: bool) -> None:
        self._toggle(self.sidebar, shown)

    @Slot(bool)
    def _toggle_cockpit(self, shown: bool) -> None:
        self._toggle(self.cockpit, shown)

    def _toggle(self, column: QWidget, shown: bool) -> None:
        """A column that is asked for gets room: the other gives way, then the window widens."""
        self._wanted = [wanted for wanted in self._wanted if wanted is not column]
        if shown:
            self._wanted.insert(0, column)
            if self.width() < self._width_with(column):
                self.resize(self._width_with(column), self.height())
        self._fit_columns(self.width())

    @Slot(QAction)
    def _choose_theme(self, action: QAction) -> None:
        self.theme_chosen.emit(action.data())

    @Slot()
    def _change_text_size(self) -> None:
        action = self.sender()
        assert isinstance(action, QAction)
        self.transcript.change_reading_size(action.data())

    @Slot()
    def _mark_theme(self) -> None:
        for action in self._theme_actions.actions():
            action.setChecked(action.data() == theme().preference())
        set_icon(self._theme_button, "moon" if theme().is_dark() else "sun", "muted")

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Side columns give way before the conversation gets too narrow, and come back."""
        super().resizeEvent(event)
        self._fit_columns(event.size().width())

    def _width_with(self, column: QWidget) -> int:
        """The least width of the window with this column beside the conversation."""
        return _CENTRE_MINIMUM + self._splitter.handleWidth() + column.minimumWidth()

    def _fit_columns(self, width: int) -> None:
        has_room_for_both = width >= _CENTRE_MINIMUM + COCKPIT_WIDTH + _SIDEBAR_WIDTH
        fitting = self._wanted if has_room_for_both else self._wanted[:1]
        if fitting and width < self._width_with(fitting[0]):
            fitting = []
        for button, column in (
            (self.cockpit_button, self.cockpit),
            (self.sidebar_button, self.sidebar),
        ):
            button.blockSignals(True)
            button.setChecked(column in fitting)
            button.blockSignals(False)
            column.setVisible(column in fitting)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Model files dropped on the message field are models, not text."""
        if event.type() in (QEvent.Type.DragEnter, QEvent.Type.DragMove, QEvent.Type.Drop):
            assert isinstance(event, QDropEvent)
            if dropped_model(event.mimeData()):
                event.acceptProposedAction()
                if event.type() == QEvent.Type.Drop:
                    self.dropEvent(event)
                return True
        return super().eventFilter(watched, event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take model files only."""
        if dropped_model(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open the model that was dropped."""
        path = dropped_model(event.mimeData())
        if path:
            event.acceptProposedAction()
            self.model_dropped.emit(path)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Tell once that the person is leaving."""
        super().closeEvent(event)
        if event.isAccepted() and not self._closed:
            self._closed = True
            self.closing.emit()


def dropped_model(data: QMimeData) -> str:
    """The first local .gguf file of a drag, "" when there is none."""
    for url in data.urls():
        path = url.toLocalFile()
        if path.lower().endswith(".gguf"):
            return path
    return ""
