"""Chats and preferences on disk; no Qt, no llama."""
