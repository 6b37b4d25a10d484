"""taoloop as an MCP server: tools and agents for any MCP host, over stdio and HTTP, in both eras of the protocol.

`offers` and `server` make the server, `stdio` and `http` carry it, `desk` drives the runs that calls become and
`asking` puts their questions to the person at the host. Needs the extra `mcp`.
"""
