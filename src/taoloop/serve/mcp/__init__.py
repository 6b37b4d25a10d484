"""taoloop as an MCP server: tools and agents for any MCP host, over stdio and HTTP, in both eras of the protocol.

`server` makes the server and what it exposes, `stdio` and `http` transport it, `dispatcher` drives the runs that calls
become, `elicitation` asks the person at the host, and `call_results` turns runs into results. Needs the extra `mcp`.
"""
