"""`InputError`: what the user gave cannot be used, and the message says what to do.

Every error of this class, and every OSError, is shown as its text: it names the file, column, row
or setting. An exception of any other class is a bug of vrgcn and says so.
"""

from __future__ import annotations


class InputError(ValueError):
    """Raised for input that the user can mend."""
