"""What `lab/paper`, `lab/bench` and `lab/studies` share.

`algorithms` is the table of algorithms, `race` lets some of them run side by side, `records` and
`units` keep results so that nothing is run twice, and `timing` takes turns.
"""
