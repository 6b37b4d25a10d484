"""taoloop as an MCP server: tools and agents for any MCP host, over stdio and HTTP, in both eras of the protocol.

`exposed_tools` and `server` make the server, `stdio` and `http` transport it, `dispatcher` drives the runs that calls
become, `elicitation` asks the person at the host, and `call_results` turns runs into results. Needs the extra `mcp`.
"""
