"""A software company as tables: its services, teams, engineers, databases and incidents. No study asks about it."""

from __future__ import annotations

from sample_graphs import edge_table, node_table

from mulligan.graphs.tables import Column, Tables

SERVICES = (
    ("s1", "Checkout", "Java", 1, 99.95, True),
    ("s2", "Catalog", "Go", 1, 99.90, True),
    ("s3", "Search", "Rust", 2, 99.70, True),
    ("s4", "Login", "Go", 1, 99.99, True),
    ("s5", "Profile", "Python", 2, 99.50, False),
    ("s6", "Notifier", "Python", 3, 98.20, False),
    ("s7", "Shipping", "Java", 2, 99.10, False),
    ("s8", "Invoices", "Java", 2, 99.60, False),
    ("s9", "Pricing", "Kotlin", 1, 99.80, False),
    ("s10", "Recommender", "Python", 3, 97.40, False),
    ("s11", "Gateway", "Rust", 1, 99.97, True),
    ("s12", "Reports", "Python", 3, 96.80, False),
    ("s13", "Fraud Guard", "Scala", 2, 99.30, False),
    ("s14", "Feature Flags", "Go", 3, 98.90, False),
)
TEAMS = (
    ("t1", "Payments", "Berlin", 2014),
    ("t2", "Discovery", "Lisbon", 2017),
    ("t3", "Identity", "Berlin", 2015),
    ("t4", "Logistics", "Warsaw", 2016),
    ("t5", "Platform", "Dublin", 2012),
    ("t6", "Insights", "Lisbon", 2019),
    ("t7", "Messaging", "Toronto", 2018),
    ("t8", "Research", "Toronto", 2021),
    ("t9", "Trust", "Dublin", 2020),
    ("t10", "Accessibility", "Warsaw", 2023),
)
ENGINEERS = (
    ("e1", "Nadia Petrova", "staff", 14, False),
    ("e2", "Tom Okafor", "senior", 7, True),
    ("e3", "Ines Duarte", "senior", 9, False),
    ("e4", "Karl Lindgren", "junior", 2, False),
    ("e5", "Mei Tanaka", "staff", 16, True),
    ("e6", "Omar Haddad", "senior", 8, False),
    ("e7", "Ruth Adler", "junior", 1, True),
    ("e8", "Pavel Novak", "principal", 21, False),
    ("e9", "Grace Mbeki", "senior", 10, True),
    ("e10", "Luis Ortega", "junior", 3, False),
    ("e11", "Hanna Virtanen", "staff", 13, False),
    ("e12", "Dev Sharma", "senior", 6, True),
    ("e13", "Zoe Martin", "junior", 4, True),
    ("e14", "Bruno Costa", "senior", 11, False),
    ("e15", "Aisha Rahman", "senior", 5, True),
)
INCIDENTS = (
    ("i1", "Black Friday Outage", "critical", 185, 2021),
    ("i2", "Certificate Expiry", "high", 95, 2022),
    ("i3", "Stale Prices", "medium", 240, 2022),
    ("i4", "Double Charges", "critical", 130, 2023),
    ("i5", "Lost Emails", "low", 360, 2020),
    ("i6", "Slow Queries", "medium", 75, 2023),
    ("i7", "Login Storm", "high", 50, 2021),
    ("i8", "Disk Full", "high", 110, 2020),
    ("i9", "Wrong Labels", "low", 420, 2024),
    ("i10", "Cache Stampede", "critical", 65, 2024),
    ("i11", "Broken Export", "low", 30, 2023),
    ("i12", "Region Failover", "high", 155, 2024),
)
DATABASES = (
    ("d1", "Orders", "PostgreSQL", 820, True),
    ("d2", "Products", "PostgreSQL", 340, False),
    ("d3", "Accounts", "MySQL", 210, True),
    ("d4", "Sessions", "Redis", 24, False),
    ("d5", "Warehouse", "MySQL", 150, False),
    ("d6", "Billing", "PostgreSQL", 460, True),
    ("d7", "Events", "Cassandra", 2900, False),
    ("d8", "Word Index", "Elasticsearch", 610, False),
    ("d9", "Archive", "MongoDB", 5200, True),
    ("d10", "Price Cache", "Redis", 16, False),
)
OWNS = (
    ("t1", "s1"),
    ("t1", "s8"),
    ("t1", "s9"),
    ("t2", "s2"),
    ("t2", "s3"),
    ("t3", "s4"),
    ("t3", "s5"),
    ("t4", "s7"),
    ("t5", "s11"),
    ("t5", "s14"),
    ("t6", "s10"),
    ("t6", "s12"),
    ("t7", "s6"),
    ("t9", "s13"),
)
MEMBER_OF = (
    ("e1", "t1", 2014),
    ("e2", "t1", 2020),
    ("e4", "t1", 2023),
    ("e3", "t2", 2017),
    ("e12", "t2", 2021),
    ("e12", "t8", 2022),
    ("e5", "t3", 2016),
    ("e5", "t9", 2020),
    ("e6", "t3", 2019),
    ("e9", "t4", 2018),
    ("e10", "t4", 2022),
    ("e8", "t5", 2012),
    ("e11", "t5", 2015),
    ("e7", "t5", 2024),
    ("e13", "t6", 2022),
    ("e15", "t7", 2021),
)
DEPENDS_ON = (
    ("s11", "s1", "gRPC", 800),
    ("s11", "s2", "gRPC", 500),
    ("s11", "s3", "REST", 700),
    ("s11", "s4", "gRPC", 300),
    ("s1", "s9", "gRPC", 250),
    ("s1", "s13", "REST", 1200),
    ("s1", "s8", "queue", 5000),
    ("s1", "s4", "gRPC", 200),
    ("s2", "s9", "REST", 400),
    ("s3", "s2", "REST", 600),
    ("s5", "s4", "gRPC", 350),
    ("s7", "s1", "queue", 4000),
    ("s7", "s6", "queue", 3000),
    ("s8", "s6", "queue", 6000),
    ("s9", "s14", "gRPC", 150),
    ("s10", "s3", "REST", 900),
    ("s10", "s5", "REST", 450),
    ("s12", "s8", "REST", 1500),
)
USES = (
    ("s1", "d1", "write"),
    ("s1", "d10", "read"),
    ("s2", "d2", "write"),
    ("s3", "d8", "read"),
    ("s3", "d2", "read"),
    ("s4", "d3", "read"),
    ("s4", "d4", "write"),
    ("s5", "d3", "write"),
    ("s7", "d5", "write"),
    ("s7", "d1", "read"),
    ("s8", "d6", "write"),
    ("s8", "d1", "read"),
    ("s9", "d10", "write"),
    ("s9", "d2", "read"),
    ("s10", "d7", "read"),
    ("s12", "d7", "read"),
    ("s12", "d6", "read"),
    ("s13", "d6", "read"),
)
AFFECTED = (
    ("i1", "s1", 52000),
    ("i1", "s2", 31000),
    ("i1", "s11", 90000),
    ("i2", "s4", 12000),
    ("i2", "s11", 27000),
    ("i3", "s1", 450),
    ("i3", "s9", 800),
    ("i4", "s1", 3200),
    ("i4", "s8", 1500),
    ("i5", "s6", 6400),
    ("i6", "s2", 1750),
    ("i6", "s3", 2100),
    ("i7", "s4", 15500),
    ("i7", "s5", 4300),
    ("i8", "s8", 610),
    ("i8", "s12", 90),
    ("i9", "s7", 380),
    ("i10", "s2", 22000),
    ("i10", "s10", 7100),
    ("i11", "s12", 45),
    ("i12", "s1", 18500),
    ("i12", "s11", 40000),
)
RESOLVED = (
    ("e8", "i1", 6.5, "rollback"),
    ("e11", "i1", 4.0, "restart"),
    ("e5", "i2", 1.5, "patch"),
    ("e11", "i2", 0.8, "restart"),
    ("e3", "i3", 3.0, "patch"),
    ("e1", "i4", 5.0, "patch"),
    ("e2", "i4", 2.5, "rollback"),
    ("e15", "i5", 8.0, "patch"),
    ("e12", "i6", 2.0, "patch"),
    ("e6", "i7", 1.0, "restart"),
    ("e11", "i8", 2.2, "cleanup"),
    ("e9", "i9", 9.5, "patch"),
    ("e8", "i10", 1.2, "restart"),
)


def tables() -> Tables:
    """The whole company."""
    service = (Column("id"), Column("name"), Column("language"), Column("tier", "int"), Column("uptime", "float"))
    engineer = (Column("id"), Column("name"), Column("level"), Column("experience", "int"), Column("remote", "boolean"))
    incident = (Column("id"), Column("title"), Column("severity"), Column("minutes", "int"), Column("year", "int"))
    database = (Column("id"), Column("name"), Column("engine"), Column("size", "int"), Column("encrypted", "boolean"))
    nodes = (
        node_table("Service", (*service, Column("public", "boolean")), SERVICES),
        node_table("Team", (Column("id"), Column("name"), Column("city"), Column("founded", "int")), TEAMS),
        node_table("Engineer", engineer, ENGINEERS),
        node_table("Incident", incident, INCIDENTS),
        node_table("Database", database, DATABASES),
    )
    edges = (
        edge_table("OWNS", (), "Team", "Service", OWNS),
        edge_table("MEMBER_OF", (Column("since", "int"),), "Engineer", "Team", MEMBER_OF),
        edge_table("DEPENDS_ON", (Column("protocol"), Column("timeout", "int")), "Service", "Service", DEPENDS_ON),
        edge_table("USES", (Column("access"),), "Service", "Database", USES),
        edge_table("AFFECTED", (Column("errors", "int"),), "Incident", "Service", AFFECTED),
        edge_table("RESOLVED", (Column("hours", "float"), Column("method")), "Engineer", "Incident", RESOLVED),
    )
    return Tables(nodes, edges)
