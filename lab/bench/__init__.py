"""The measurements of `vrgcn bench`, one module per section.

Sections share `bench.Bench` (the graph, the amount of work), `rates` (time to accuracy) and
`section` (tables and JSON), and return a `section.Section`. A new section is one new file and one
line in `run.SECTIONS`.
"""
