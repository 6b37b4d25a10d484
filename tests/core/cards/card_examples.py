"""Cards as people write them, for the linter: 36 good ones, and 36 with one fault each that it is to find."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard, ToolCard

ERRORS = (ErrorCard(code="not_found", advice="Check the id."),)


def read(name: str, purpose: str, /, avoid_when: str = "", **parameters: Any) -> ToolCard:
    """A read card; a parameter is its description, or its schema. One whose name ends in `_` is optional."""
    return _card(name, purpose, avoid_when, "read", parameters)


def change(name: str, purpose: str, /, avoid_when: str = "", tier: Any = "write", **parameters: Any) -> ToolCard:
    """A card of a tool that changes something, which declares what that needs."""
    roles = {parameter.rstrip("_"): "target" for parameter in parameters}
    return _card(name, purpose, avoid_when, tier, parameters, egress=True, roles=roles, reversible=False)


def _card(name: str, purpose: str, avoid_when: str, tier: Any, parameters: dict[str, Any], **more: Any) -> ToolCard:
    rules = {
        parameter.rstrip("_"): rule if isinstance(rule, dict) else {"type": "string", "description": rule}
        for parameter, rule in parameters.items()
    }
    required = [parameter for parameter in parameters if not parameter.endswith("_")]
    schema = {"type": "object", "properties": rules, "required": required, "additionalProperties": False}
    return ToolCard(
        name=name, purpose=purpose, avoid_when=avoid_when, tier=tier, errors=ERRORS, input_schema=schema, **more
    )


GOOD = (
    # functions
    read("word_count", "Count the words of a text, at most 1 MB.", text="The text."),
    read(
        "convert_currency",
        "Convert an amount between two currencies by the rate of the day; no history.",
        amount={"type": "number", "description": "The amount."},
        source="Such as EUR.",
        target="Such as USD.",
    ),
    read(
        "list_open_orders", "List the open orders of a customer, newest first, at most 50.", customer_id="Such as C-17."
    ),
    read(
        "get_order_status",
        "Return the status, the carrier and the expected delivery of one order.",
        "The order number is not known.",
        order_id="Such as O-2025-1.",
    ),
    read(
        "search_flights",
        "Search flights by airport, date and number of seats. Books nothing.",
        origin="IATA code.",
        destination="IATA code.",
        day={"type": "string", "format": "date"},
    ),
    read(
        "check_availability",
        "Check whether a room is free on given days; it does not reserve it.",
        room="Its name.",
        day={"type": "string", "format": "date"},
    ),
    read(
        "estimate_shipping",
        "Estimate the cost of sending a parcel within the EU.",
        weight_kg={"type": "number", "description": "Weight in kg."},
    ),
    read("find_email", "Find the email address of an employee by name; no external people.", name="Full name."),
    read("post_count", "Number of posts and comments that a user wrote. Drafts are not counted.", user_id="Id."),
    read("order_history", "Orders that a customer placed, paid or cancelled in the last 90 days only.", customer="Id."),
    read("load_config", "Load a configuration file and return its values; never secrets.", path="Relative path."),
    change(
        "send_invoice",
        "Send one invoice to a customer by mail.",
        "It was already sent.",
        invoice_id="Such as I-7.",
        to="Mail address.",
    ),
    change(
        "create_ticket",
        "Create a support ticket and return its number. Cannot attach files.",
        title="One line.",
        body_="What happened.",
    ),
    change(
        "update_address",
        "Change the delivery address of an order that has not been shipped.",
        order_id="Id.",
        address="The new one.",
    ),
    change("cancel_booking", "Cancel a booking. It cannot be restored.", tier="destructive", booking_id="Id."),
    change(
        "delete_file",
        "Delete one file of the workspace; folders are not deleted.",
        tier="destructive",
        path="Relative path.",
    ),
    change(
        "book_table",
        "Reserve a table and send the guest a confirmation, at most 20 people.",
        day="YYYY-MM-DD.",
        guests={"type": "integer", "minimum": 1},
    ),
    change(
        "add_comment",
        "Add a comment to an issue. It notifies everybody who watches the issue.",
        "The comment only repeats another one.",
        issue={"type": "integer", "description": "Its number."},
        text="Markdown.",
    ),
    change(
        "transfer_money",
        "Transfer money between two own accounts and record it in the ledger; not abroad.",
        tier="destructive",
        source="IBAN.",
        target="IBAN.",
        amount={"type": "string", "pattern": r"^\d+\.\d\d$"},
    ),
    # MCP servers
    read(
        "read_file",
        "Read the complete contents of a file as text. Only works within allowed directories.",
        path="Path of the file.",
    ),
    read(
        "directory_tree",
        "Get a recursive tree view of files and directories as JSON, at most 1,000 entries.",
        path="Where to begin.",
    ),
    change(
        "write_file",
        "Create a new file or completely overwrite an existing file. Use with caution, as it will"
        " overwrite files without warning.",
        path="Path.",
        content="Text.",
    ),
    change(
        "move_file",
        "Move or rename files and directories. Fails if the destination exists.",
        source="Path.",
        destination="Path.",
    ),
    read(
        "git_log",
        "Shows the commit logs, newest first, up to max_count entries.",
        repo_path="Path.",
        max_count_={"type": "integer", "description": "At most how many.", "default": 10},
    ),
    change("git_commit", "Records changes to the repository. Does not push them.", message="Commit message."),
    read(
        "browser_snapshot",
        "Capture the accessibility snapshot of the current page; this is better than a screenshot.",
        "The page has not been opened.",
    ),
    # OpenAPI documents
    read(
        "getPetById",
        "Returns a single pet, without its photos.",
        petId={"type": "integer", "description": "ID of pet."},
    ),
    read(
        "repos_list-for-org",
        "Lists repositories for the specified organization, up to 100 per page.",
        org="Login name.",
        per_page_={"type": "integer", "description": "Page size.", "default": 30},
    ),
    change(
        "createPaymentIntent",
        "Creates a PaymentIntent object. After it is created, attach a payment method and confirm"
        " to continue. No money moves before that.",
        amount={"type": "integer", "description": "Cents."},
    ),
    change(
        "issues_update",
        "Issue owners and users with push access can edit an issue. Others cannot.",
        issue_number={"type": "integer", "description": "Its number."},
        title_="New title.",
    ),
    # Chinese
    read("query_weather", "查询城市未来三天的天气，不支持历史天气。", city="城市名，例如上海。"),
    read("查询订单", "按订单号查询订单的支付、发货和取消状态，最多返回 10 条。", order_id="订单号。"),
    read(
        "search_contacts",
        "搜索通讯录，返回姓名、电话和最近发送的邮件主题。",
        "要找的人不是本公司员工。",
        keyword="姓名或部门。",
    ),
    read("stock_list", "获取仓库的库存清单，包括已下单未发货的商品，仅限本仓。", warehouse="仓库编号。"),
    change(
        "create_leave", "创建请假申请并提交审批，一次最多 15 天。", days={"type": "integer", "description": "天数。"}
    ),
    change("delete_record", "删除一条记录，删除后不可恢复。", tier="destructive", record_id="记录编号。"),
)


def fault(code: str, card: ToolCard, **changes: Any) -> tuple[str, ToolCard]:
    """A card with changes, and the code of the finding that they deserve."""
    return code, replace(card, **changes)


LOOK = read("look_up_user", "Find one user by name, at most 10 hits.", name="Full name.")
MAIL = change("send_mail", "Send one mail, at most 1 MB.", to="Address.")
PART: dict[str, Any] = {"type": "object", "properties": {"name": {}}, "required": ["name"]}

BAD = (
    fault("meaningless_name", LOOK, name="handler"),
    fault("meaningless_name", LOOK, name="doAction"),
    fault("meaningless_name", LOOK, name="api_v2_call"),
    fault("meaningless_name", LOOK, name="tool_1"),
    fault("no_purpose", LOOK, purpose=""),
    fault("no_purpose", LOOK, purpose="?"),
    fault("no_limits", LOOK, purpose="Find a user by name."),
    fault("no_limits", LOOK, purpose="按姓名查找用户。"),
    fault(
        "several_things", LOOK, purpose="Find a user by name and delete the account, at most one.", tier="destructive"
    ),
    fault("several_things", MAIL, purpose="Read the inbox and send a reply, at most 1 MB."),
    fault("several_things", MAIL, purpose="Gets the order, cancels it and emails the customer, within 30 days."),
    fault("several_things", MAIL, purpose="Look up a customer, then update the address; EU only."),
    fault("several_things", MAIL, purpose="Search the files and delete them, at most 10."),
    fault("several_things", MAIL, purpose="查询客户信息，并发送邮件，仅限本公司。"),
    fault("several_things", MAIL, purpose="读取文件，然后删除，最多 10 个。"),
    fault("several_things", MAIL, purpose="获取订单并取消，最多 1 个。"),
    fault("several_things", MAIL, name="find_and_delete_users"),
    fault("several_things", MAIL, name="getOrRemoveItem"),
    fault("parameter_without_type", LOOK, input_schema=PART),
    fault("parameter_without_description", LOOK, input_schema=PART),
    fault("parameter_without_description", LOOK, input_schema={**PART, "properties": {"name": {"type": "string"}}}),
    fault("required_not_stated", LOOK, input_schema={"type": "object", "properties": LOOK.parameters}),
    fault("no_tier", LOOK, tier=None),
    fault("no_tier", MAIL, tier=None),
    fault("tier_contradicts_name", LOOK, name="delete_user"),
    fault("tier_contradicts_name", LOOK, name="sendReminder", purpose="Reminds one user at most."),
    fault("tier_contradicts_name", LOOK, name="mail", purpose="Sends one mail, at most 1 MB."),
    fault("tier_contradicts_name", LOOK, name="user_tool", purpose="更新用户资料，仅限昵称。"),
    fault("tier_contradicts_name", LOOK, name="purge_cache", purpose="Purges the cache, not the index."),
    fault("tier_contradicts_name", LOOK, name="record", purpose="Creates a record without a note."),
    fault("no_egress", MAIL, egress=None),
    fault("no_role", MAIL, roles={}),
    fault("no_rollback", MAIL, reversible=None),
    fault("no_errors", LOOK, errors=()),
    fault("example_does_not_fit", LOOK, examples=(ExampleCard(args={}),)),
    fault("example_does_not_fit", LOOK, examples=(ExampleCard(args={"name": "Ann", "age": 3}),)),
)
