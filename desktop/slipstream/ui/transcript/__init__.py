"""The view of a conversation."""
