"""Tools: cards with the code behind them, built in, or from documents, servers, databases and folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from taoloop.core.cards.card_lint import Finding as Finding, lint as lint
    from taoloop.core.cards.tool_card import (
        ErrorCard as ErrorCard,
        ExampleCard as ExampleCard,
        JournalConnection as JournalConnection,
        ToolCard as ToolCard,
    )
    from taoloop.tools.builtin.catalog import builtin_tools as builtin_tools
    from taoloop.tools.builtin.commands import sandbox_tools as sandbox_tools
    from taoloop.tools.builtin.lookup import lookup_tool as lookup_tool
    from taoloop.tools.builtin.time_now import time_now_tool as time_now_tool
    from taoloop.tools.documents import (
        CitedPassage as CitedPassage,
        DocumentFolder as DocumentFolder,
        Embedder as Embedder,
        PageFolder as PageFolder,
        document_tools as document_tools,
        locate as locate,
        page_tools as page_tools,
        paper_tools as paper_tools,
    )
    from taoloop.tools.egress import (
        EgressClient as EgressClient,
        EgressResponse as EgressResponse,
        EgressRules as EgressRules,
        Resolver as Resolver,
        http_client as http_client,
    )
    from taoloop.tools.from_card import tool_from_card as tool_from_card
    from taoloop.tools.from_functions_json import (
        FunctionCards as FunctionCards,
        cards_from_functions as cards_from_functions,
        tools_from_functions as tools_from_functions,
    )
    from taoloop.tools.graphql import GraphqlSource as GraphqlSource, graphql_tools as graphql_tools
    from taoloop.tools.mcp import (
        Change as Change,
        McpOAuth as McpOAuth,
        McpSandbox as McpSandbox,
        McpServer as McpServer,
        approve_changes as approve_changes,
        close_all as close_all,
        close_server as close_server,
        log_in as log_in,
        log_out as log_out,
        mcp_tools as mcp_tools,
        pending_changes as pending_changes,
    )
    from taoloop.tools.oauth import (
        LoginStore as LoginStore,
        OAuthClient as OAuthClient,
        SqliteLoginStore as SqliteLoginStore,
        UserLogin as UserLogin,
        logins_of as logins_of,
    )
    from taoloop.tools.openapi import (
        OpenapiSource as OpenapiSource,
        document_findings as document_findings,
        openapi_tools as openapi_tools,
    )
    from taoloop.tools.sandbox.confinement import SandboxLimits as SandboxLimits
    from taoloop.tools.skills import (
        SkillChange as SkillChange,
        SkillFolder as SkillFolder,
        approve_skills as approve_skills,
        pending_skills as pending_skills,
        skill_tools as skill_tools,
    )
    from taoloop.tools.sql import Database as Database, sql_tools as sql_tools
    from taoloop.tools.tool import (
        Probe as Probe,
        RunContext as RunContext,
        RunUsage as RunUsage,
        Tool as Tool,
        ToolContext as ToolContext,
        ToolOutput as ToolOutput,
    )
    from taoloop.tools.toolbox import LoadProblem as LoadProblem, LoadResult as LoadResult, Toolbox as Toolbox
    from taoloop.tools.web import FetchSettings as FetchSettings, fetch_tools as fetch_tools
    from taoloop.tools.web_search import WebSearchSettings as WebSearchSettings, web_search_tools as web_search_tools


__getattr__, __dir__, __all__ = lazy_exports(
    globals(),
    {
        "taoloop.core.cards.card_lint": "Finding lint",
        "taoloop.core.cards.tool_card": "ErrorCard ExampleCard JournalConnection ToolCard",
        "taoloop.tools.builtin.catalog": "builtin_tools",
        "taoloop.tools.builtin.commands": "sandbox_tools",
        "taoloop.tools.builtin.lookup": "lookup_tool",
        "taoloop.tools.builtin.time_now": "time_now_tool",
        "taoloop.tools.documents": (
            "CitedPassage DocumentFolder Embedder PageFolder document_tools locate page_tools paper_tools"
        ),
        "taoloop.tools.egress": "EgressClient EgressResponse EgressRules Resolver http_client",
        "taoloop.tools.from_card": "tool_from_card",
        "taoloop.tools.from_functions_json": "FunctionCards cards_from_functions tools_from_functions",
        "taoloop.tools.graphql": "GraphqlSource graphql_tools",
        "taoloop.tools.mcp": (
            "Change McpOAuth McpSandbox McpServer approve_changes close_all close_server log_in log_out "
            "mcp_tools pending_changes"
        ),
        "taoloop.tools.oauth": "LoginStore OAuthClient SqliteLoginStore UserLogin logins_of",
        "taoloop.tools.openapi": "OpenapiSource document_findings openapi_tools",
        "taoloop.tools.sandbox.confinement": "SandboxLimits",
        "taoloop.tools.skills": "SkillChange SkillFolder approve_skills pending_skills skill_tools",
        "taoloop.tools.sql": "Database sql_tools",
        "taoloop.tools.tool": "Probe RunContext RunUsage Tool ToolContext ToolOutput",
        "taoloop.tools.toolbox": "LoadProblem LoadResult Toolbox",
        "taoloop.tools.web": "FetchSettings fetch_tools",
        "taoloop.tools.web_search": "WebSearchSettings web_search_tools",
    },
)
