"""A merchant fleet as tables: ships with their owners, captains, cargo and ports. No study asks about it."""

from __future__ import annotations

from sample_graphs import edge_table, node_table

from mulligan.graphs.tables import Column, Tables

SHIPS = (
    ("s1", "Northern Star", "tanker", 1998, 42000, 14.5, "Norway"),
    ("s2", "Blue Heron", "container ship", 2011, 98500, 22.0, "Panama"),
    ("s3", "Maria Elena", "bulk carrier", 2004, 61000, 13.8, "Malta"),
    ("s4", "Kestrel", "ferry", 2016, 18200, 24.5, "Norway"),
    ("s5", "Old Faithful", "bulk carrier", 1979, 23400, 11.2, "Greece"),
    ("s6", "Amber Coast", "tanker", 2009, 75500, 15.1, "Liberia"),
    ("s7", "Sea Lark", "ferry", 1993, 9600, 18.9, "Sweden"),
    ("s8", "Caspian Pearl", "container ship", 2019, 142000, 23.3, "Panama"),
    ("s9", "Iron Duchess", "bulk carrier", 2013, 88700, 14.0, "Liberia"),
    ("s10", "Polar Fox", "icebreaker", 2001, 14800, 16.4, "Norway"),
    ("s11", "Santa Rosalia", "container ship", 2006, 67200, 20.7, "Malta"),
    ("s12", "Tidewater", "tanker", 2021, 110300, 15.9, "Greece"),
    ("s13", "Little Anna", "ferry", 1987, 4100, 12.6, "Sweden"),
    ("s14", "Golden Meridian", "container ship", 2015, 121500, 21.8, "Panama"),
)
PORTS = (
    ("p1", "Bergen", "Norway", 14, 11.0, True),
    ("p2", "Gothenburg", "Sweden", 22, 14.5, True),
    ("p3", "Lulea", "Sweden", 8, 9.2, False),
    ("p4", "Rotterdam", "Netherlands", 90, 24.0, True),
    ("p5", "Antwerp", "Belgium", 61, 16.8, True),
    ("p6", "Piraeus", "Greece", 38, 18.0, True),
    ("p7", "Valletta", "Malta", 12, 15.5, True),
    ("p8", "Genoa", "Italy", 29, 15.0, True),
    ("p9", "Gdansk", "Poland", 26, 17.0, True),
    ("p10", "Kemi", "Finland", 6, 10.0, False),
    ("p11", "Riga", "Latvia", 17, 12.5, False),
    ("p12", "Narvik", "Norway", 9, 27.0, True),
    ("p13", "Trieste", "Italy", 20, 18.2, True),
    ("p14", "Split", "Croatia", 10, 12.0, True),
)
CAPTAINS = (
    ("c1", "Ingrid Solberg", 52, "Norwegian", False),
    ("c2", "Nikos Andreadis", 61, "Greek", False),
    ("c3", "Tom Hartley", 38, "British", False),
    ("c4", "Elsa Lindqvist", 45, "Swedish", False),
    ("c5", "Pietro Grech", 57, "Maltese", False),
    ("c6", "Yusuf Demir", 43, "Turkish", False),
    ("c7", "Hanna Virtanen", 34, "Finnish", False),
    ("c8", "Georgios Pappas", 70, "Greek", True),
    ("c9", "Olav Brekke", 68, "Norwegian", True),
    ("c10", "Marta Kowalska", 49, "Polish", False),
    ("c11", "Sven Nordin", 29, "Swedish", False),
    ("c12", "Lucia Ferrante", 41, "Italian", False),
)
COMPANIES = (
    ("k1", "Fjord Lines", "Bergen", 1931),
    ("k2", "Aegean Bulk", "Piraeus", 1968),
    ("k3", "Hansa Container", "Hamburg", 1987),
    ("k4", "Baltic Passage", "Stockholm", 1955),
    ("k5", "Melita Shipping", "Valletta", 1974),
    ("k6", "Deepwater Oil", "London", 1999),
    ("k7", "Orlando Freight", "Trieste", 2003),
    ("k8", "Northgate Marine", "Rotterdam", 2012),
    ("k9", "Sunda Reefers", "Singapore", 1992),
)
CARGOES = (
    ("g1", "crude oil", "liquid", 520.0, True),
    ("g2", "iron ore", "dry bulk", 105.5, False),
    ("g3", "wheat", "dry bulk", 240.0, False),
    ("g4", "bananas", "refrigerated", 890.0, False),
    ("g5", "diesel", "liquid", 780.0, True),
    ("g6", "timber", "general", 310.0, False),
    ("g7", "passenger cars", "vehicles", 9500.0, False),
    ("g8", "electronics", "general", 21000.0, False),
    ("g9", "fertilizer", "dry bulk", 390.0, True),
    ("g10", "frozen fish", "refrigerated", 2600.0, False),
    ("g11", "liquid ammonia", "liquid", 610.0, True),
    ("g12", "scrap metal", "general", 340.0, False),
)
OWNED_BY = (
    ("s1", "k6", 2005),
    ("s2", "k3", 2011),
    ("s3", "k5", 2010),
    ("s4", "k1", 2016),
    ("s5", "k2", 1979),
    ("s6", "k6", 2009),
    ("s7", "k4", 1993),
    ("s8", "k3", 2019),
    ("s9", "k8", 2018),
    ("s10", "k1", 2001),
    ("s11", "k5", 2006),
    ("s12", "k2", 2021),
    ("s14", "k3", 2015),
)
COMMANDS = (
    ("c1", "s4", 2016),
    ("c2", "s5", 2003),
    ("c2", "s12", 2021),
    ("c3", "s8", 2020),
    ("c4", "s7", 2009),
    ("c5", "s3", 2012),
    ("c6", "s6", 2015),
    ("c7", "s10", 2019),
    ("c10", "s2", 2013),
    ("c12", "s11", 2018),
)
TRAINED = (
    ("c8", "c2"),
    ("c8", "c5"),
    ("c9", "c1"),
    ("c9", "c4"),
    ("c1", "c7"),
    ("c4", "c11"),
    ("c2", "c6"),
    ("c10", "c3"),
    ("c5", "c12"),
)
CALLS_AT = (
    ("s1", "p1", 24, "loading"),
    ("s1", "p4", 18, "unloading"),
    ("s2", "p4", 30, "transshipment"),
    ("s2", "p5", 12, "unloading"),
    ("s2", "p8", 9, "loading"),
    ("s3", "p7", 20, "repairs"),
    ("s3", "p6", 15, "loading"),
    ("s3", "p13", 6, "unloading"),
    ("s4", "p1", 310, "passengers"),
    ("s4", "p2", 140, "passengers"),
    ("s5", "p6", 10, "loading"),
    ("s5", "p8", 7, "unloading"),
    ("s6", "p4", 22, "unloading"),
    ("s6", "p9", 5, "unloading"),
    ("s6", "p5", 11, "loading"),
    ("s7", "p2", 260, "passengers"),
    ("s7", "p11", 75, "passengers"),
    ("s8", "p4", 26, "transshipment"),
    ("s8", "p6", 14, "transshipment"),
    ("s8", "p9", 8, "unloading"),
    ("s9", "p12", 33, "loading"),
    ("s9", "p4", 31, "unloading"),
    ("s10", "p3", 45, "ice clearing"),
    ("s10", "p10", 52, "ice clearing"),
    ("s11", "p7", 17, "repairs"),
    ("s11", "p8", 19, "loading"),
    ("s12", "p6", 21, "loading"),
    ("s12", "p13", 27, "unloading"),
    ("s13", "p11", 90, "passengers"),
    ("s14", "p5", 16, "transshipment"),
    ("s14", "p4", 29, "unloading"),
)
CARRIES = (
    ("s1", "g1", 38000, "tank"),
    ("s2", "g8", 12000, "containers"),
    ("s2", "g7", 9000, "containers"),
    ("s2", "g4", 7000, "reefer boxes"),
    ("s3", "g3", 45000, "loose"),
    ("s3", "g9", 8000, "bags"),
    ("s4", "g7", 600, "drive-on"),
    ("s5", "g3", 17000, "loose"),
    ("s5", "g6", 2500, "bundles"),
    ("s6", "g5", 64000, "tank"),
    ("s6", "g1", 7000, "tank"),
    ("s8", "g8", 52000, "containers"),
    ("s8", "g10", 15000, "reefer boxes"),
    ("s9", "g2", 82000, "loose"),
    ("s11", "g4", 21000, "reefer boxes"),
    ("s11", "g6", 14000, "bundles"),
    ("s12", "g1", 99000, "tank"),
    ("s14", "g7", 48000, "containers"),
    ("s14", "g8", 30000, "containers"),
    ("s14", "g10", 6000, "reefer boxes"),
)
ROUTE_TO = (
    ("p1", "p2", 430, "Skagerrak"),
    ("p1", "p4", 560, "North Sea"),
    ("p4", "p5", 120, "North Sea"),
    ("p2", "p9", 470, "Baltic Sea"),
    ("p9", "p11", 310, "Baltic Sea"),
    ("p11", "p3", 540, "Baltic Sea"),
    ("p3", "p10", 75, "Gulf of Bothnia"),
    ("p4", "p8", 2100, "Strait of Gibraltar"),
    ("p5", "p8", 2180, "Strait of Gibraltar"),
    ("p8", "p7", 590, "Mediterranean"),
    ("p7", "p6", 520, "Mediterranean"),
    ("p6", "p13", 780, "Adriatic Sea"),
    ("p13", "p14", 210, "Adriatic Sea"),
    ("p12", "p1", 620, "Norwegian Sea"),
)


def tables() -> Tables:
    ship = (Column("id"), Column("name"), Column("kind"), Column("built", "int"), Column("tonnage", "int"))
    port = (Column("id"), Column("name"), Column("country"), Column("berths", "int"), Column("depth", "float"))
    captain = (Column("id"), Column("full_name"), Column("age", "int"), Column("nationality"))
    company = (Column("id"), Column("name"), Column("headquarters"), Column("founded", "int"))
    cargo = (Column("id"), Column("name"), Column("category"), Column("price", "float"), Column("hazardous", "boolean"))
    nodes = (
        node_table("Ship", (*ship, Column("speed", "float"), Column("flag")), SHIPS),
        node_table("Port", (*port, Column("ice_free", "boolean")), PORTS),
        node_table("Captain", (*captain, Column("retired", "boolean")), CAPTAINS),
        node_table("Company", company, COMPANIES),
        node_table("Cargo", cargo, CARGOES),
    )
    edges = (
        edge_table("OWNED_BY", (Column("since", "int"),), "Ship", "Company", OWNED_BY),
        edge_table("COMMANDS", (Column("since", "int"),), "Captain", "Ship", COMMANDS),
        edge_table("TRAINED", (), "Captain", "Captain", TRAINED),
        edge_table("CALLS_AT", (Column("visits", "int"), Column("purpose")), "Ship", "Port", CALLS_AT),
        edge_table("CARRIES", (Column("tons", "int"), Column("packing")), "Ship", "Cargo", CARRIES),
        edge_table("ROUTE_TO", (Column("miles", "int"), Column("waters")), "Port", "Port", ROUTE_TO),
    )
    return Tables(nodes, edges)
