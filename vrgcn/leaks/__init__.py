"""Looks for leaks in a graph and its split, before anyone trusts a score."""

from vrgcn.leaks.checks import find_leaks, quick_audit
from vrgcn.leaks.finding import Finding
from vrgcn.leaks.later import Later

__all__ = ["Finding", "Later", "find_leaks", "quick_audit"]
