"""A store of measurements for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping


class Store:
    """Keeps JSON, as a file would."""

    def __init__(self) -> None:
        self.text: dict[str, str] = {}

    def load(self, key: str) -> Mapping[str, object] | None:
        return json.loads(self.text[key]) if key in self.text else None

    def save(self, key: str, values: Mapping[str, object]) -> None:
        self.text[key] = json.dumps(values)
