"""How much memory calls take, measured in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys

_CODE = """
import asyncio, json, resource, sys
from taoloop.errors import TaoError
from taoloop.tools.sql import Database, sql_tools
from taoloop.tools.tool import ToolContext

url, tool, *statements = sys.argv[1:]
settings = {"write": True, "timeout_s": 30.0} if tool == "execute" else {"timeout_s": 30.0}
tools = {made.name: made for made in sql_tools(Database(name="shop", url=url, **settings)).tools}
def call(statement):
    try:
        return asyncio.run(tools[f"shop.{tool}"].invoke({"statement": statement}, ToolContext())) and ""
    except TaoError as error:
        return error.code
call("SELECT 1")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
codes = [call(statement) for statement in statements]
print(json.dumps([codes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before]))
"""


def codes_and_growth(url: str, *statements: str, tool: str = "query") -> tuple[list[str], float]:
    """The code of the error that each call ends with, and by how many megabytes their process grew."""
    command = [sys.executable, "-c", _CODE, url, tool, *statements]
    codes, kib = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return codes, kib / 1024
