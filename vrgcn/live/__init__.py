"""Exact predictions for a graph that changes: tables of every level are kept, and a change computes
anew only the rows that it affects."""
