"""A small library as tables: books with their authors, and members who borrowed some. No study asks about it."""

from __future__ import annotations

from sample_graphs import edge_table, node_table

from mulligan.graphs.tables import Column, Tables

BOOKS = (
    ("b1", "Emma", 1815, 4.5, "novel", "90"),
    ("b2", "Walden", 1854, 3.9, "essay", "12"),
    ("b3", "Dune", 1965, 4.7, "novel", "40"),
    ("b4", "Ulysses", 1922, 3.2, "novel", "70"),
)
AUTHORS = (
    ("a1", "Austen", "England", True),
    ("a2", "Thoreau", "America", False),
    ("a3", "Herbert", "America", True),
    ("a4", "Joyce", "Ireland", True),
    ("a5", "Nobody", "Ireland", False),
)
MEMBERS = (("m1", "Ann", 30), ("m2", "Bob", 41), ("m3", "Cleo", 25))
WROTE = (("a1", "b1"), ("a2", "b2"), ("a3", "b3"), ("a4", "b4"))
BORROWED = (("m1", "b1", 7, "2020"), ("m1", "b3", 20, "2021"), ("m2", "b3", 3, "2022"))
KNOWS = (("m1", "m2"),)


def tables() -> Tables:
    """The whole library. The property `on` is a keyword."""
    book = (Column("id"), Column("title"), Column("year", "int"), Column("rating", "float"), Column("genre"))
    author = (Column("id"), Column("name"), Column("country"), Column("living", "boolean"))
    nodes = (
        node_table("Book", (*book, Column("shelf")), BOOKS),
        node_table("Author", author, AUTHORS),
        node_table("Member", (Column("id"), Column("name"), Column("age", "int")), MEMBERS),
    )
    edges = (
        edge_table("WROTE", (), "Author", "Book", WROTE),
        edge_table("BORROWED", (Column("days", "int"), Column("on")), "Member", "Book", BORROWED),
        edge_table("KNOWS", (), "Member", "Member", KNOWS),
    )
    return Tables(nodes, edges)
