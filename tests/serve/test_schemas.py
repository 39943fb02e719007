"""Schemas of bodies: what they refuse, and that they are JSON Schemas."""

from __future__ import annotations

from typing import Any

import pytest

from vrgcn.serve.answers import ProblemError
from vrgcn.serve.schemas import bodies, check

BODIES = bodies(batch=3)
EDGE = {"source": 0, "target": "p1"}


def test_other_validators_agree() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    node, row = ("POST", "/nodes"), {"id": 1, "year": 2.5, "tags": ["a", None], "old": True}
    good: list[tuple[tuple[str, str], Any]] = [
        (node, {"nodes": [row], "kind": None}),
        (("PATCH", "/nodes/{id}"), row),
        (("DELETE", "/edges"), {"edges": [EDGE | {"weight": 2}], "relation": "r"}),
        (("POST", "/changes"), {"changes": [{"change": "remove_nodes", "ids": [1, "2"]}]}),
    ]
    bad: list[tuple[tuple[str, str], Any]] = [
        (node, None),
        (node, {"nodes": []}),
        (node, {"nodes": [row] * 4}),
        (node, {"nodes": {"id": 1}}),
        (node, {"nodes": [row | {"year": {"a": 1}}]}),
        (node, {"nodes": [row | {"year": [[1]]}]}),
        (node, {"nodes": [row], "kind": 3}),
        (node, {"nodes": [row], "more": 3}),
        (("POST", "/edges"), {"edges": [EDGE | {"source": True}]}),
        (("POST", "/edges"), {"edges": [EDGE | {"source": 1.5}]}),
        (("POST", "/changes"), {"changes": [{"change": "add", "rows": [row]}]}),
        (("POST", "/changes"), {"changes": [{"change": ["add_nodes"], "rows": [row]}]}),
        (("POST", "/changes"), {"changes": [{"change": "add_nodes"}]}),
        (("POST", "/changes"), {"changes": [{"change": "remove_nodes", "ids": [None]}]}),
        (("POST", "/what-if"), {"changes": [{"change": "remove_nodes", "ids": [1]}]}),
    ]
    for route, body in good:
        jsonschema.Draft202012Validator(BODIES[route]).validate(body)
        check(body, BODIES[route])
    for route, body in bad:
        assert not jsonschema.Draft202012Validator(BODIES[route]).is_valid(body), body
        with pytest.raises(ProblemError):
            check(body, BODIES[route])


@pytest.mark.parametrize(
    ("cell", "field"),
    [
        (2**63, "c"),
        (-(2**63) - 1, "c"),
        (float("inf"), "c"),
        ([0.5, float("-inf")], "c[1]"),
        ([1, 2, 10**400], "c[2]"),
        ([1, "\udfff"], "c[1]"),
        ({}, "c"),
    ],
)
def test_numbers_that_64_bits_do_not_hold_and_half_characters_are_refused(
    cell: Any, field: str
) -> None:
    with pytest.raises(ProblemError) as caught:
        check({"c": cell}, BODIES["PATCH", "/nodes/{id}"])
    assert (caught.value.status, caught.value.field) == (422, field)


def test_numbers_that_64_bits_hold_are_taken() -> None:
    for cell in (2**63 - 1, -(2**63), 1e300, [1e300, 1], [True, None, "x", 0.5], []):
        assert check({"c": cell}, BODIES["PATCH", "/nodes/{id}"]) is None
