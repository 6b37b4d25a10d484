"""Logins of the people for whom agents work: OAuth 2.0 with a token for each person (`UserLogin`)."""

from taoloop.tools.oauth.store import LoginStore, SqliteLoginStore
from taoloop.tools.oauth.user_login import OAuthClient, UserLogin, logins_of

__all__ = ["LoginStore", "OAuthClient", "SqliteLoginStore", "UserLogin", "logins_of"]
