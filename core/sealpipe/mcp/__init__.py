"""A local MCP server: assistants ask people for secrets, share and use them, and never see one."""
