"""Files that may be anybody's: read without trust, written whole or not at all."""
