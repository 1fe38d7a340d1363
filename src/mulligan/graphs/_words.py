"""The words of Cypher in its dialects, by what the guard makes of them. Upper case, as the guard compares them."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BEGINNINGS = _words("MATCH OPTIONAL WITH UNWIND RETURN CALL")
"""What a query that reads begins with."""

WRITING = _words(
    """CREATE MERGE SET DELETE DETACH NODETACH REMOVE DROP INSERT FOREACH LOAD USE COPY ALTER ATTACH INSTALL UNINSTALL
    EXPORT IMPORT UPSERT TRUNCATE GRANT REVOKE DENY TRANSACTIONS"""
)
"""Words that write, or reach outside of the graph, wherever a clause can begin. A name of that spelling goes in
backticks, unless it stands where only a name can."""

ELSEWHERE = _words(
    """ALTER ANALYZE BEGIN CHECKPOINT COMMENT COMMIT CYPHER DEALLOCATE DETACH DISABLE DRYRUN ENABLE EXECUTE EXPLAIN
    FORCE KILL PROFILE REALLOCATE RENAME ROLLBACK SELECT SHOW SHUTDOWN START STOP SYNC TERMINATE UPDATE VACUUM"""
)
"""Words that begin statements which do something other than ask the graph."""

LINKS = _words(
    """ALL AND AS ASC ASCENDING BY CALL CASE CONTAINS DESC DESCENDING DISTINCT EDGES ELEMENT ELEMENTS ELSE END ENDS
    FILTER FROM GROUP GROUPS HINT IN INDEX IS JOIN LIMIT MATCH MULTI_JOIN NODES NORMALIZED NOT NULL NULLS OFFSET
    ON OPTIONAL OR ORDER PATH PATHS POINT RANGE RELATIONSHIP RELATIONSHIPS RETURN ROWS SCAN SEEK SKIP STARTS
    TEXT THEN TYPED UNION UNWIND USING WHEN WHERE WITH XOR YIELD ZONED"""
)
"""What may follow a value, a name or a closed bracket."""

LEADING = LINKS | _words("ALL ANY ACYCLIC COUNT EXISTS COLLECT NONE SHORTEST SINGLE TRAIL WALK")
"""Words that may be a keyword or a name where a value is expected."""

VALUES = _words("NULL TRUE FALSE END INF INFINITY NAN")
"""Keywords that are values themselves, or end one."""

PROCEDURES = _words(
    """db.labels db.relationshiptypes db.propertykeys db.schema.visualization db.schema.nodetypeproperties
    db.schema.reltypeproperties db.index.fulltext.querynodes db.index.fulltext.queryrelationships
    db.index.vector.querynodes db.index.vector.queryrelationships db.info db.ping dbms.components show_tables
    table_info show_connection show_indexes show_functions db_version catalog_version storage_version
    current_setting query_fts_index query_vector_index"""
)
"""Procedures and table functions that only read, in lower case."""

NAMESPACED = _words(
    """date.truncate date.realtime date.statement date.transaction datetime.truncate datetime.realtime
    datetime.statement datetime.transaction datetime.fromepoch datetime.fromepochmillis localdatetime.truncate
    localdatetime.realtime localdatetime.statement localdatetime.transaction time.truncate time.realtime
    time.statement time.transaction localtime.truncate localtime.realtime localtime.statement
    localtime.transaction duration.between duration.inmonths duration.indays duration.inseconds point.distance
    point.withinbbox vector.similarity.cosine vector.similarity.euclidean"""
)
"""Functions with a dot in their name that only compute, in lower case; all others may do anything."""

OUTSIDE_BEGIN = ("load_", "read_", "scan_", "copy_", "import_", "export_", "write_", "http_", "open_", "attach_")
OUTSIDE_END = ("_scan", "_load")
OUTSIDE = _words("nextval setval file url linenumber load getenv")
"""Functions that read files or the network, or change something; by how their names begin and end, in lower case."""
