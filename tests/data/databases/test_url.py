"""Addresses of tables: what they name, and that no password gets past them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.messages import refused
from vrgcn.data.databases.url import TableUrl, place
from vrgcn.files.wording import has_password, without_password


def test_an_address_has_a_scheme_a_database_and_a_table_or_query() -> None:
    url = TableUrl.parse("SQLite:///shop.db#users")
    assert (url.scheme, url.address, url.what) == ("sqlite", "sqlite:///shop.db", "users")
    assert str(url) == "sqlite:///shop.db#users"
    query = TableUrl.parse("postgresql://h/shop?service=x#SELECT '#', a FROM t WHERE b = 'c  d'")
    assert query.address == "postgresql://h/shop?service=x"
    assert query.what == "SELECT '#', a FROM t WHERE b = 'c  d'"


def test_three_slashes_are_relative_and_four_absolute() -> None:
    assert TableUrl.parse("duckdb:///a/shop.db").file == Path("a/shop.db")
    assert TableUrl.parse("sqlite:////data/my%20shop%23.db").file == Path("/data/my shop#.db")
    for text in ("sqlite://shop.db#users", "sqlite:///#users", "sqlite://"):
        with refused():
            _ = TableUrl.parse(text).file


def test_a_text_without_a_scheme_is_a_file() -> None:
    assert place("users.csv") == Path("users.csv")
    assert place(Path("sub") / "users.csv") == Path("sub/users.csv")
    assert place("sqlite:///a.db#t") == TableUrl("sqlite", "sqlite:///a.db", "t")
    with refused(TypeError):
        place(Path("sqlite:///a.db#t"))


def test_an_unknown_scheme_is_refused_with_those_that_there_are() -> None:
    with refused():
        place("mysql://h/shop#users")
    with refused():
        place("sqlit:///shop.db#users")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cret@host/shop#users",
        "postgresql://me:1234@host/shop#users",
        "postgresql://me:s3/cr#et@host:5432/shop#users",
        "postgresql://:s3cret@host/shop",
        "postgresql://me:s3cret@[::1]/shop",
        "postgresql://host/shop?user=me&password=s3cret#users",
        "postgresql://host/shop?sslpassword=s3cret",
    ],
)
def test_a_password_is_refused_and_not_repeated(url: str) -> None:
    with refused() as caught:
        place(url)
    for secret in ("s3cret", "1234", "s3/cr", "et@host"):
        assert secret not in str(caught.value)
    shown = without_password(f"cannot read {url} at all")
    assert "***" in shown
    assert "s3cret" not in shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:@/shop?host=/run/postgresql#users",
        "postgresql://host:5432/shop#SELECT id FROM users WHERE mail = 'a@b'",
        "postgresql://one:5432,two:5433/shop?passfile=/x",
        "postgresql://[::1]:5432/shop#SELECT password='x' FROM users",
        "sqlite:///a:b@c.db#users",
    ],
)
def test_what_is_no_password_is_let_through(url: str) -> None:
    assert not has_password(url)
    assert str(place(url)) == url
