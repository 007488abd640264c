"""Entry point of `slipstream` and `python -m slipstream`."""

from __future__ import annotations

import sys

from slipstream.cli import main

if __name__ == "__main__":
    sys.exit(main())
