"""A small shop as a database: users, items and orders, the same rows in every kind of database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SCHEMA = (
    "CREATE TABLE users (id INTEGER PRIMARY KEY, age REAL, city VARCHAR(20), label VARCHAR(9))",
    "CREATE TABLE items (sku VARCHAR(9) PRIMARY KEY, price DECIMAL(8, 2), added DATE)",
    "CREATE TABLE orders (user_id INTEGER NOT NULL REFERENCES users (id), "
    "sku VARCHAR(9) NOT NULL REFERENCES items (sku), amount INTEGER, PRIMARY KEY (user_id, sku))",
)
USERS = [
    (n, None if n == 3 else 20.5 + n % 7, ("Bonn", "Köln")[n % 2], "ab"[n % 2]) for n in range(12)
]
ITEMS = [(f"s{n}", n * 1.5, f"2024-01-{n + 1:02d}") for n in range(5)]
ORDERS = [(n, f"s{(n + k) % 5}", k + 1) for n in range(12) for k in range(2)]
ROWS = {"users": USERS, "items": ITEMS, "orders": ORDERS}


def literal(value: Any) -> str:
    return "NULL" if value is None else repr(value)


def fill(execute: Callable[[str], Any]) -> None:
    """Make the tables and fill them with statements that every database takes."""
    for statement in SCHEMA:
        execute(statement)
    for table, rows in ROWS.items():
        values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
        execute(f"INSERT INTO {table} VALUES {values}")


def flags(address: str, out: str = "g") -> tuple[str, ...]:
    """Words of `vrgcn import` for the three tables of a database, the orders by a query."""
    return (
        *("--nodes", f"user={address}#users", f"item={address}#items"),
        *("--edges", f"user-bought-item={address}#SELECT * FROM orders WHERE amount > 0"),
        *("--id", "item.sku", "--source", "bought.user_id", "--target", "bought.sku"),
        *("--ratio", "0.5", "0.25", "0.25", "--out", out),
    )
