"""The smallest MCP server with one tool, by the official SDK: on stdin and stdout, or over HTTP at
a PORT.
"""

from __future__ import annotations

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("smallest", log_level="ERROR")


@server.tool()
def check() -> str:
    """Check nothing."""
    return "ok"


if sys.argv[1:]:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run()
