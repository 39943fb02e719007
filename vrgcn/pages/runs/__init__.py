"""The page of `vrgcn report`: curves and tables of what runs wrote to their folders.

`records` reads the folders, `curves` and `tables` show them, `scores` predicts once more. `report`
has the table of panels.
"""
