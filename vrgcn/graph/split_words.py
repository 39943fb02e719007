"""Words that name the training, validation and test part of a split."""

from __future__ import annotations

# Spellings -> 0 train, 1 val, 2 test.
SPLIT_WORDS = {
    **dict.fromkeys(("train", "training"), 0),
    **dict.fromkeys(("val", "valid", "validation", "dev"), 1),
    **dict.fromkeys(("test", "testing"), 2),
}
