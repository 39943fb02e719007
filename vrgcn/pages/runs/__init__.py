"""The page of `vrgcn report`: what runs wrote to their folders, as curves and tables.

`records` reads the folders, `curves` and `tables` show them, `scores` predicts once more.
`report` has the table of panels.
"""
