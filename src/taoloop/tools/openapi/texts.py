"""What the tools of an API report to the model in a run: errors of calls, and notes on responses."""

from __future__ import annotations

from taoloop.tools.texts import ToolTexts

TEXTS = ToolTexts(
    {
        # arguments
        "unsendable": "The argument {name!r} cannot be sent: {reason}.",
        "path_empty": "it is part of the path and cannot be empty",
        "path_changed": "{segment!r} would change the path",
        "control_characters": "it contains line breaks or control characters",
        "header_charset": "a header can only contain Latin-1 characters, and {char!r} is none; "
        "write {encoded} instead if the API decodes percent-encoding there",
        "header_charset_secret": "a header can only contain Latin-1 characters, and this secret has others",
        "header_name": "{name!r} cannot be the name of a header",
        "data_url": "its `data:` URL is not valid base64",
        "form_object": "a form must be an object of its fields",
        # operations that cannot be called
        "no_server": "{tool!r} cannot be called: its document names no usable server.",
        "no_server_hint": "Set `base_url` for this API. Nothing was sent.",
        "path_variable": "The path {path!r} contains {{{name}}}, which is not a parameter of the operation.",
        "unsupported_security": "{tool!r} requires a kind of security that is not supported: {schemes}.",
        "unsupported_security_hint": "Only the operator can change this; do without this tool.",
        "missing_key": "{tool!r} needs a key for the security scheme {scheme!r} of its API, and none is set.",
        "missing_key_hint": "Set `auth: {setting}` for this API, and the variable {variable}. Nothing was sent.",
        "undefined_scheme": "{tool!r} needs a key for the security scheme {scheme!r}, and its document defines none.",
        "undefined_scheme_hint": "Set `auth: {setting}` for this API, and the variable {variable}; the API's "
        "documentation names the header (or `query`, `cookie`). Nothing was sent.",
        "token_refused": "The token server for {scheme!r} issued no token: HTTP {status}: {text}",
        "token_refused_hint": "Only the operator can change this: check `auth.{scheme}`. The call was not sent.",
        # responses
        "failed": "{request} returned HTTP {status}.",
        "failed_with_body": "{request} returned HTTP {status}: {body}",
        "body_bytes": "({size:,} bytes of {media_type})",
        "documented": "The API's document says: {text}",
        "retry_after": "The API asks to wait: {value}.",
        "redirected": "It redirects to {location}; redirects of such a call are not followed.",
        "maybe_done": "It may have taken effect nevertheless: check before you try again.",
        "hint_401": "The API rejected the operator's key; only the operator can change that.",
        "hint_403": "The operator's key does not have this permission; only the operator can change that.",
        "hint_404": "Check the ids and names in the arguments.",
        "hint_409": "Read the current state first.",
        "hint_429": "The API accepts no more calls for now; wait, or request less.",
        "no_response": "{text} It may or may not have taken effect.",
        "no_response_hint": "Check whether it took effect before you try again.",
        "api_unreachable": "the API cannot be reached",
        "api_timeout": "the API sent no complete response in time",
        "api_failed": "the API sent no usable response",
        "api_refused": "{request} was not sent: the operator's rules do not allow it.",
        "api_hint": "Try again later, or do without this tool; the operator's log has the reason.",
        "exhausted": "Max retries exceeded after {attempts} attempts. The last one: {code}: {message}",
        "cut": "The response was too large; this is its beginning. Request less.",
        "not_json": "The response claims to be JSON, but is not.",
    },
)
