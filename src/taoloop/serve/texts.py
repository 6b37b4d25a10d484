"""Texts of the servers for people and for models: questions to a client, instructions to an agent, the check of a file.

What is part of a protocol stays English: errors of the API, results of MCP calls, logs.
"""

from __future__ import annotations

from taoloop.core.text import TextCatalog

TEXTS = TextCatalog(
    "serve",
    {
        # What waits for approval, in the answer to a chat client
        "approval_head": "This needs your approval before it is done:",
        "approval_because": " (because: {reasons})",
        "approval_undo": "; {undo}",
        "approval_again": "In short:",
        "approval_in_doubt": "The outcome of these calls is unknown. The operator of the server must look it up "
        "(`tao settle`):",
        "approval_how": "Answer `yes` to approve it, or `no` and a reason to refuse it; anything else you write "
        "refuses it, and the agent reads what you wrote.",
        "question_head": "The agent asks you:",
        "question_how_choice": "Answer with the number or the words of one of them.",
        "question_how_text": "Your next message is the answer. It approves no action.",
        "question_how_number": "Answer with a number.",
        "question_how_integer": "Answer with a whole number.",
        "question_how_yes_no": "Answer `yes` or `no`. It approves no action.",
        "question_how_date": "Answer with a date, such as 2026-01-31.",
        "question_how_email": "Answer with an e-mail address.",
        "operator_head": "This needs the approval of the server's operator before it is done:",
        "operator_how": "The operator has been asked (`tao approvals`); you need not answer. Write again later to see "
        "what came of it.",
        "user_own_words": "it uses details that you have not given yourself",
        "user_not_asked": "your message does not ask for exactly this",
        "user_excluded": "your message says that part of it is not wanted",
        "user_repeated": "the same was done before",
        "user_denied": "It needs an approval that nobody could give.",
        "user_unsupported": "No answer: what I could say is not borne out by what was looked up.",
        "user_blocked": "The task is not done: part of it needs an approval that nobody could give.",
        "approval_run": "(run {run}, code {code})",
        "approval_unused": "Your answer was not used: it was for something else than what waits now, or too short for "
        "what is hard to undo or for calls with targets from different sources (write the whole word `yes`).",
        "separator": "; ",
        "login_here": "To use {api} for you, I need your login there: {url} (for {minutes} minutes, for you alone). "
        "Write again when you have logged in.",
        "login_no_address": "To use {api} for you, I need your login there. The operator of the server must first set "
        "its address (`server.public_url`).",
        # What an agent is told
        "undescribed_client_tool": "A tool of the client, which does not describe it.",
        "client_performs_call": "the client performs it and sends the result in its next request",
        "must_call_tool": "Before you answer in words, call at least one of these tools: {names}. The client that "
        "asked performs them and needs the call; an answer in words alone is of no use to it.",
        "call_tool_now": "Call one of these tools now, with what is known so far: {names}. Do not answer in words.",
        "continue": "Continue.",
        "rewrite_as_json": "Write the answer below as JSON. Keep to what it says: add nothing, and leave out nothing "
        "that has a field.\n\nQuestion: {question}\n\nAnswer: {answer}",
        # Questions to the person at an MCP host, and the notes that the model reads
        "question_one": "Approve this call?",
        "question_many": "Approve these {n} calls?",
        "question_grave": "High-risk: it is hard to undo, and its target does not appear in the task.",
        "question_reasons": "Asked because: {reasons}",
        "question_no_tier": "no tier: counts as destructive",
        "question_origin": "   ({badges})",
        "badge_YOURS": "quoted from the task",
        "badge_LOOKED UP": "from a trusted tool",
        "badge_WRITTEN": "written by the model",
        "badge_LINKS": "has links that are in no trusted text",
        "badge_UNKNOWN": "no known source",
        "badge_FOREIGN": "only in untrusted output",
        "form_allow": "Approve",
        "form_allow_help": "Whether this may be done.",
        "form_note": "Note",
        "form_note_help": "If not: why, for the model to read.",
        "refused_unasked": "nobody could be asked, for {reason}. The operator of `tao mcp` can allow calls of "
        "{tool!r}: {remedy}",
        "for_operator": "the user may not authorise it, and the operator has not",
        "no_forms": "this MCP client shows no questions (elicitation)",
        "too_many": "too many other calls wait for an answer; it can be made again when some of them are answered",
        "remedy": "--approve {tier}, or a rule in --policy FILE",
        "remedy_rule": "a rule in --policy FILE that allows exactly this tool",
        "no_answer": "the client sent something else than an answer",
        "no_answer_in_time": "nobody answered within {seconds:g} s",
        "client_refused": "the client did not ask: {message}",
        "person_said": "the person said {action}",
        "person_refused": "the person did not approve it",
        "caller_gone": "the caller has left",
        "progress_step": "step {step}",
        "progress_calls": "step {step}: {tools}",
        "progress_asks": "{tool}: a person decides",
        "progress_done": "{call_id}: done",
        "progress_failed": "{call_id}: failed",
        # `tao serve --check`
        "form_own": "the gateway's own form",
        "form_agent": "an agent file",
        "form_higress": "an ai-agent file",
        "form_flat": "an ai-agent file in its short form",
        "form_wasm_plugin": "a WasmPlugin resource with configurations of ai-agent",
        "listens": "listens on: {address}",
        "database": "runs are kept in: {path}",
        "default_database": "the user's own database (`tao doctor` names it)",
        "host_names": "names by which it is reached, besides those of this machine: {names}",
        "pages": "pages that may call it from a browser: {origins}",
        "protocols": "protocols beside OpenAI's APIs: {names}",
        "retention": "finished runs are kept: {limits}",
        "notify": "told what waits for a person: {hooks}",
        "server_limits": "limits of the server: {limits}",
        "no_keys": "keys: none; the server only starts on an address of this machine",
        "keys": "keys:",
        "key": "  {name}: {agents}, {limits}",
        "every_agent": "every agent",
        "no_limits": "no limits",
        "may_not_approve": ", may not approve",
        "panel_role": ", {role} in the panel",
        "blocked": ", blocked",
        "expires": ", expires {time}",
        "expired_key": "The key {name} expired on {time}: every request with it is refused. Give it a later `expires`, "
        "or remove it.",
        "tls": "TLS: {cert}",
        "client_ca": "clients need a certificate of: {path}",
        "admin_keys": "keys are managed by: {names}",
        "jwt": "tokens are accepted of {issuer} for {audience}, by the keys at {source}",
        "agent": "agent {name}",
        "agent_described": "agent {name}: {description}",
        "agent_settings": "  dialect: {dialect}, language: {language}, policy: {policy}",
        "task_language": "that of the task",
        "agent_limits": "  limits: {limits}",
        "json_answer": "  answers are turned into JSON: {schema}",
        "its_schema": "its schema",
        "any_object": "any JSON object",
        "schema_answer": "  answers fit a JSON Schema",
        "tools": "  tools:",
        "no_tools": "  tools: none",
        "found_by_search": ", found by a search",
        "model": "  model: {model}",
        "fallback": "  else: {model}",
        "at": " at {address}",
        "undeclared_tier": "tier not declared",
        "asks_each_time": ", asks each time",
        "unknown_server": "{method} {path}, which is on no known server",
        "default_agent": "A request whose `model` is no agent's name is answered by {agent}.",
        "unused_override": "{file}: {name}: no model and no OpenAPI tool is at this host, so nothing is sent "
        "elsewhere.",
        "unknown_price": "The price of {model} (agent {agent}) is not known, so it costs nothing of the `usd_per_day` "
        "of {keys}: write the price under `prices`, or bound these keys by `tokens_per_minute`, or the agent by "
        "`limits`.",
        "problem": "agent {agent}: {problem}",
        "warnings": "warnings:",
        "no_warnings": "warnings: none",
    },
)
"""By name, in English and Chinese. `approval_run` is parsed again from a later request: it stays as it is."""
