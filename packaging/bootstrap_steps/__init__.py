"""The steps that turn a fresh clone into a running Slipstream; standard library only."""
