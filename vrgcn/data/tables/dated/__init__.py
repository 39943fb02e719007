"""Rows with a time of their own: the import of dated tables and of the rows of a task.

    --dated result.date qualifying.date --rows driver=dnf.csv --at date --label did_not_finish

Each row of a dated table is a node that became known at its date, and so is each row of the task,
of a kind called as its table. Edges lead from what was known earlier to what became known later and
never back: from entities to their facts, from facts to rows (graph/dated.py).

    settings     what the settings name; it imports no Arrow
    times        the dates of all rows, the split of those of the task, and what may be learned from
    edges        relations with a dated end, and those to the facts that rows see
    telling      what is dated, which relations are made, and how many edges a row has
"""
