"""What `vrgcn bench` measures, one module a section.

Sections share `bench.Bench` (the graph, how much to do), `rates` (time to accuracy) and `section`
(tables and JSON), and answer with a `section.Section`. A new section is one new file and one line
in `run.SECTIONS`.
"""
