"""Looks for leaks before anyone trusts a score: `audit` of a graph with its split."""

from vrgcn.audit.audit import audit, quick_audit
from vrgcn.audit.finding import Finding
from vrgcn.audit.later import Later

__all__ = ["Finding", "Later", "audit", "quick_audit"]
