"""Code that `lab/paper`, `lab/bench` and `lab/studies` share.

`algorithms` is the table of algorithms, `race` runs some of them side by side, `records` and
`units` keep results so that nothing is run twice, and `timing` takes turns.
"""
