"""The sections of a recording, a module each with a function `record`."""
