"""The installed PySide6 is one that survives: some lose a reference to None per void call."""

from __future__ import annotations

import subprocess
import sys

VOID_CALLS = """
from PySide6.QtWidgets import QApplication, QLabel
application = QApplication([])
label = QLabel()
for number in range(20_000):
    label.setText(str(number))
print(label.text())
"""


def test_twenty_thousand_void_calls_survive() -> None:
    result = subprocess.run(
        [sys.executable, "-c", VOID_CALLS], capture_output=True, text=True, timeout=120
    )
    assert (result.returncode, result.stdout.strip()) == (0, "19999"), result.stderr
