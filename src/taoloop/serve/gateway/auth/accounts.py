"""By which name the logins of a client's user are kept, and what of them must not reach a model. Pure."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote, unquote

from taoloop.serve.gateway.auth.keys import TOKEN_OWNER

LOGIN_PATH = "/oauth/login"
"""The path of the page where a login begins; a ticket follows it."""

_LINK = re.compile(rf"\S*{LOGIN_PATH}/[\w-]+")
_MAX_CHARS = 300


def account_of(owner: str, user: str) -> str:
    """The name by which the logins of a client's user are kept: of the key and the user together.

    Who has a key speaks for all its users, and for nobody else. A token of an identity provider is one person,
    whatever the request says. Empty: whoever uses this machine, on a server without keys.
    """
    if owner.startswith(TOKEN_OWNER):
        user = ""
    account = quote(user, safe="")
    if owner:
        account = f"{quote(owner, safe='')}/{account}"
    return account if len(account) <= _MAX_CHARS else hashlib.sha256(account.encode()).hexdigest()


def person_of(account: str) -> str:
    """What a person is shown of an account: the user, else the client."""
    owner, _, user = account.rpartition("/")
    return unquote(user) or unquote(owner).removeprefix(TOKEN_OWNER)


def without_login_links(text: str) -> str:
    """A message without the addresses of logins, which are for people alone."""
    return _LINK.sub("[…]", text) if LOGIN_PATH in text else text
