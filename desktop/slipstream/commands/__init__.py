"""The subcommands of `slipstream`, one module each, without a window."""
