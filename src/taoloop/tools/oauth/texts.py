"""What logins report: to the model in a run, and to the person in the browser."""

from __future__ import annotations

from taoloop.tools.texts import ToolTexts

TEXTS = ToolTexts(
    {
        # to the model
        "login_required": "{api} can only be used with a login of the person whom this run is for, and there is none.",
        "login_expired": "{api} no longer accepts the login of the person whom this run is for.",
        "login_required_hint": "Nothing was done. Tell the person that they must log in to {api}: they are shown the "
        "address for it with your answer (on the command line: `tao login`). Do not try again before they have.",
        "token_failed": "The token server for {api} did not answer as it should: HTTP {status}.",
        "token_failed_hint": "Nothing was done. Try again later, or do without this tool.",
        # to the person in the browser
        "page_title": "Log in to {api}",
        "page_ask": "{user} has asked an agent for something that needs access to {api}. You log in at {host}, and the "
        "agent then acts in your name there.",
        "page_anyone": "Somebody",
        "page_warning": "Continue only if it was you who asked. If somebody sent you this address, close the page: "
        "otherwise their agent gets access to your account.",
        "page_continue": "It was me: log in",
        "page_done": "You are logged in to {api}. Close this page, and ask the agent again.",
        "page_failed": "There is no login: {reason} Ask the agent again for a new address.",
        "state_unknown": "the address was used before, has expired, or was never given out.",
        "other_browser": "the login began in another browser.",
        "other_issuer": "the answer came from another authorization server.",
        "denied": "{host} gave no access: {reason}.",
        "exchange_failed": "{host} gave no token (HTTP {status}).",
    },
)
