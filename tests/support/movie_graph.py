"""A few movies as tables, with their people and studios. No study asks about it."""

from __future__ import annotations

from sample_graphs import edge_table, node_table

from mulligan.graphs.tables import Column, Tables

MOVIES = (
    ("m1", "Alien", 1979, 117, "English", "horror"),
    ("m2", "Heat", 1995, 170, "English", "crime"),
    ("m3", "Amelie", 2001, 122, "French", "comedy"),
    ("m4", "Gravity", 2013, 91, "English", "drama"),
    ("m5", "Playtime", 1967, 124, "French", "comedy"),
)
PERSONS = (
    ("p1", "Ridley Scott", 1937, "British"),
    ("p2", "Sigourney Weaver", 1949, "American"),
    ("p3", "Al Pacino", 1940, "American"),
    ("p4", "Audrey Tautou", 1976, "French"),
    ("p5", "Jacques Tati", 1907, "French"),
    ("p6", "Sandra Bullock", 1964, "American"),
)
STUDIOS = (("s1", "Fox", "Los Angeles"), ("s2", "Gaumont", "Paris"), ("s3", "Idle Pictures", "Rome"))
ACTED_IN = (
    ("p2", "m1", "Ripley"),
    ("p3", "m2", "Hanna"),
    ("p4", "m3", "Amelie"),
    ("p6", "m4", "Stone"),
    ("p5", "m5", "Hulot"),
)
DIRECTED = (("p1", "m1"), ("p5", "m5"))
PRODUCED_BY = (("m1", "s1", 11), ("m2", "s1", 60), ("m3", "s2", 10), ("m5", "s2", 17))
ADMIRES = (("p2", "p1"), ("p4", "p5"))


def tables() -> Tables:
    movie = (Column("id"), Column("title"), Column("released", "int"), Column("runtime", "int"), Column("language"))
    nodes = (
        node_table("Movie", (*movie, Column("genre")), MOVIES),
        node_table("Person", (Column("id"), Column("name"), Column("born", "int"), Column("nationality")), PERSONS),
        node_table("Studio", (Column("id"), Column("name"), Column("city")), STUDIOS),
    )
    edges = (
        edge_table("ACTED_IN", (Column("role"),), "Person", "Movie", ACTED_IN),
        edge_table("DIRECTED", (), "Person", "Movie", DIRECTED),
        edge_table("PRODUCED_BY", (Column("budget", "int"),), "Movie", "Studio", PRODUCED_BY),
        edge_table("ADMIRES", (), "Person", "Person", ADMIRES),
    )
    return Tables(nodes, edges)
