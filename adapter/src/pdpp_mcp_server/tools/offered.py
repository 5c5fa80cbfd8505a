"""The tools of this adapter, by their names."""

from collections.abc import Mapping

from pdpp_mcp_server.calls import ToolFunction
from pdpp_mcp_server.tools.aggregate import aggregate
from pdpp_mcp_server.tools.fetch import fetch
from pdpp_mcp_server.tools.query_records import query_records
from pdpp_mcp_server.tools.read_record_field import read_record_field
from pdpp_mcp_server.tools.schema import schema
from pdpp_mcp_server.tools.search import search

OFFERED: Mapping[str, ToolFunction] = {
    "schema": schema,
    "query_records": query_records,
    "aggregate": aggregate,
    "search": search,
    "fetch": fetch,
    "read_record_field": read_record_field,
}
