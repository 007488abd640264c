"""Records and rules of a conversation; standard library only."""
