"""Looks for leaks before anyone trusts a score: `audit` of a graph with its split."""

from vrgcn.audit.audit import audit, quick_audit
from vrgcn.audit.finding import Finding

__all__ = ["Finding", "audit", "quick_audit"]
