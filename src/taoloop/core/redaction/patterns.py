"""What looks like a secret: names that announce one, the prefixes of vendors, headers, URLs, private keys.

Every expression here runs in linear time: it begins at a literal, its repetitions are bounded or of one class of
characters that ends the match, and what needs a second thought is judged in Python after the match.
"""

from __future__ import annotations

import base64
import binascii
import re
from functools import lru_cache
from typing import Literal

from taoloop.core.redaction.block_scalars import find_blocks
from taoloop.core.redaction.ordinary_words import is_ordinary_word
from taoloop.core.text import lazy_pattern

Strength = Literal["", "box", "weak", "strong"]
"""What a name says about its value: nothing; that it contains secrets; that it may be one; that it is one."""


def redaction_label(name: str) -> str:
    """The label in place of a secret."""
    return f"[redacted:{name}]"


LABEL = lazy_pattern(r"\[redacted:[^\[\]\n]{1,120}\]")

_BOUNDARY = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4}))"
_VENDOR = lazy_pattern(
    _BOUNDARY + r"(?:(?P<aws_key>(?:AKIA|ASIA)[A-Z0-9]{12,})"
    r"|(?P<google_key>AIza[A-Za-z0-9_-]{24,})"
    r"|(?P<google_token>ya29\.[A-Za-z0-9_-]{16,})"
    r"|(?P<github_token>(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{16,})"
    r"|(?P<gitlab_token>gl(?:pat|ptt|dt|rt|soat|cbt)-[A-Za-z0-9_.-]{12,})"
    r"|(?P<slack_token>(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,})"
    r"|(?P<npm_token>npm_[A-Za-z0-9]{16,})"
    r"|(?P<pypi_token>pypi-[A-Za-z0-9_-]{16,})"
    r"|(?P<huggingface_token>hf_[A-Za-z0-9]{16,})"
    r"|(?P<sendgrid_key>SG\.[A-Za-z0-9_.-]{24,})"
    r"|(?P<stripe_key>(?:[sr]k_(?:live|test)_|whsec_)[A-Za-z0-9]{10,})"
    r"|(?P<aliyun_key>LTAI[A-Za-z0-9]{12,})"
    r"|(?P<tencent_key>AKID[A-Za-z0-9]{12,})"
    r"|(?P<groq_key>gsk_[A-Za-z0-9]{16,})"
    r"|(?P<xai_key>xai-[A-Za-z0-9]{16,})"
    r"|(?P<perplexity_key>pplx-[A-Za-z0-9]{16,})"
    r"|(?P<langsmith_key>lsv2_[a-z]{2}_[A-Za-z0-9_]{16,})"
    r"|(?P<vault_token>hvs\.[A-Za-z0-9_-]{16,})"
    r"|(?P<google_secret>GOCSPX-[A-Za-z0-9_-]{16,})"
    r"|(?P<api_key>sk-[A-Za-z0-9_-]{16,})"
    r"|(?P<jwt>eyJ[A-Za-z0-9_.-]{16,}))"
)
_TELEGRAM = lazy_pattern(r"(?<![0-9A-Za-z:])(?:bot)?([0-9]{6,12}:AA[A-Za-z0-9_-]{30,40})(?![A-Za-z0-9_-])")
_WEBHOOK = lazy_pattern(
    r"(hooks\.slack\.com/[a-z]{1,20}/|discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/|webhook\.office\.com/webhookb2/"
    r"|/bot/v2/hook/|/cgi-bin/webhook/(?:send|upload_media)\?key=)([A-Za-z0-9@/_-]{8,512})",
    re.IGNORECASE,
)
_SIGNATURE = lazy_pattern(r"\bsig=([A-Za-z0-9%+/=_-]{16,512})", re.IGNORECASE)
_PEM = lazy_pattern(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:[^-]|-(?!----))*-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"|(?:(?:\\[nr]|\s){1,6}[A-Za-z0-9+/=]{16,})+(?:(?:\\[nr]|\s){1,6}[A-Za-z0-9+/=]{1,15}$)?)"  # cut off
)
_URL = lazy_pattern(r"://([^\s/?#@:\"'<>]{0,256})(?::([^\s/?#@\"'<>]{1,512}))?@")
_SCHEME = lazy_pattern(r"\b(bearer|basic)(\s{1,4}|%20)([A-Za-z0-9._~+/=-]{8,})", re.IGNORECASE)
_AUTHORIZATION = lazy_pattern(
    r"authorization(\\*[\"']?\s{0,4}[:=]\s{0,4}\\*[\"']?)"
    r"(?:(bearer|basic|token|api-?key|digest|negotiate|ntlm|hmac|signature|aws4-hmac-sha256)(\s{1,4}))?"
    r"([^\"'\\\r\n<>]{4,4096})",
    re.IGNORECASE,
)
_COOKIE = lazy_pattern(r"cookie(\\*[\"']?\s{0,4}[:=]\s{0,4}\\*[\"']?)([^\"'\\\r\n<>]{3,4096})", re.IGNORECASE)
_NAMED_FIELD = (
    r"(?P<name>(?P<strong>passw(?:or)?d|passphrase|passcode|pwd|(?<=_)pass(?=\s?=)|密码|口令)"
    r"|secret[_-]?access[_-]?key|client[_-]?secret|secret[_-]?key|private[_-]?key|api[ _-]?key|access[_-]?key"
    r"|signing[_-]?key|encryption[_-]?key|auth[_-]?key|account[_-]?key|session[_-]?(?:id|key)|credential|secret|token|密钥|私钥|令牌"
    r"|(?<![a-z])auth(?![a-z]))"
    r"(?P<rest>s|\d{1,3}|[_-][\w-]{0,24})?"
    r"(?P<mark>\\*[\"']?\s{0,4}(?::=|=>|[:=：])\s{0,4})"
)
_NAMED_VALUE = lazy_pattern(
    _NAMED_FIELD + r"(?:(?P<quote>\\*[\"'])(?P<quoted>(?:(?!(?P=quote))(?:\\.|[^\\\n])){0,4096})"
    r"|(?P<bare>[^\s\"'`,;&<>，；。]{1,2048}))",
    re.IGNORECASE,
)
_NAMED_NAME = lazy_pattern(_NAMED_FIELD, re.IGNORECASE)
_STRONG_WORD = r"passw(?:or)?d|passphrase|passcode"
_FLAG = (
    r"(?<![\w-])--?(?P<flag>[a-z0-9-]{0,24}(?:passw(?:or)?d|passphrase|passcode)|pass|pwd|[a-z0-9-]{0,24}(?:token|secret"
    r"|api-?key|access-?key|secret-?key))\s{1,4}"
)
_SAYING = (
    rf"(?P<said>{_STRONG_WORD}|密码|口令)"
    r"(?:\s{1,4}(?:is|was)(?:\s{0,4}:)?\s{1,4}|\s{0,4}(?:是|为|就是|设为|设成|改为|改成)\s{0,4}[:：]?\s{0,4})"
)
_SPOKEN_VALUE = (
    r"(?:(?P<quote>\\*[\"'“「])(?P<quoted>[^\s\"'\\”」]{1,512})(?=\\*[\"'”」])"
    r"|(?P<bare>[^\s\"'`,;<>，；。“”「」]{1,512}))"
)
_FLAG_VALUE = lazy_pattern(_FLAG + _SPOKEN_VALUE, re.IGNORECASE)
_SAID_VALUE = lazy_pattern(_SAYING + _SPOKEN_VALUE, re.IGNORECASE)
_TAG = r"<(?:[\w-]{1,40}:)?([\w.-]{1,80})(?:\s[^<>]{0,200})?>(?:<!\[CDATA\[)?"
_TAGGED_VALUE = lazy_pattern(_TAG + r"([^<>]{1,2048})(?=(?:\]\]>)?</)")
_COMMAND = r"\b(?:curl|wget|mysql\w{0,12}|mariadb[\w-]{0,12}|sshpass)\b"
_USER_OPTION = lazy_pattern(r"(?<=\s)(-u|-U|--user|--proxy-user)([ =]{0,2}[\"']?)([^\s:\"']{1,128}):([^\s\"']{1,512})")
_SSHPASS = lazy_pattern(r"\b(sshpass\s{1,4}-p\s{0,4}[\"']?)([^\s\"'`]{1,512})")
_PASSWORD_OPTION = lazy_pattern(r"(?<=\s)-p([\"']?)([^\s\"'`]{1,512})")
_LOGIN = r"\b(?:docker|podman|nerdctl|buildah)\s{1,4}login\b[^\n;&|]{0,120}?\s-p[ =]{1,2}[\"']?"
_LOGIN_OPTION = lazy_pattern(rf"({_LOGIN})([^\s\"'`]{{1,512}})")
_SQL_ACCOUNT_HEAD = (
    r"\b(?:(?:(?:create|alter)\s{1,4}(?:user|role|login)|grant)\b[^\n;]{1,160}?\s"
    r"(?:identified(?:\s{1,4}with\s{1,4}[\w'\"`]{1,40})?\s{1,4}(?:by|as)|password)|with\s{1,4}password)\s{1,4}"
)
_SQL_ACCOUNT = lazy_pattern(
    rf"({_SQL_ACCOUNT_HEAD})(?:(?P<quote>\\*[\"'])(?P<quoted>(?:(?!(?P=quote))[^\n]){{1,512}})(?P=quote))",
    re.IGNORECASE,
)
"""`IDENTIFIED BY '…'` of MySQL, MariaDB and Oracle, `WITH PASSWORD '…'` of PostgreSQL and SQL Server."""
_COMMANDS = lazy_pattern(_COMMAND)
_QUOTE = lazy_pattern(r"\\*[\"']")
_NAME_OF_JSON = lazy_pattern(r"\"([^\"\\\n]{1,120})\"\s{0,4}:")
_OPENINGS: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = (
    (lazy_pattern(r"://"), lazy_pattern(r"[\s/?#\"'<>@]")),
    (lazy_pattern(r"\b(?:bearer|basic)(?:\s{1,4}|%20)", re.IGNORECASE), lazy_pattern(r"[^A-Za-z0-9._~+/=\s-]|\S\s")),
    (
        lazy_pattern(r"(?:authorization|cookie)\\*[\"']?\s{0,4}[:=]\s{0,4}(?:\\*[\"'])?", re.IGNORECASE),
        lazy_pattern(r"[\"'\\\r\n<>]"),
    ),
    (lazy_pattern(_FLAG, re.IGNORECASE), lazy_pattern(r"\S[\s\"'`,;<>，；。“”「」]")),
    (lazy_pattern(_SAYING, re.IGNORECASE), lazy_pattern(r"\S[\s\"'`,;<>，；。“”「」]")),
    (lazy_pattern(r"\bsshpass\s{1,4}-p\s{0,4}[\"']?"), lazy_pattern(r"\S\s")),
    (lazy_pattern(_SQL_ACCOUNT_HEAD, re.IGNORECASE), lazy_pattern(r"\S\s")),
    (lazy_pattern(_LOGIN), lazy_pattern(r"\S\s")),
    (lazy_pattern(_TAG), lazy_pattern(r"<.")),
    (lazy_pattern(_NAMED_FIELD, re.IGNORECASE), lazy_pattern(r"\S[\s\"'`,;&<>，；。]|[`,;&<>，；。]")),
)
"""What announces a secret, up to its first character, and what ends it; a value in quotes ends with its quote."""

_PLACEHOLDER = lazy_pattern(
    r"[\W_]*|x{3,}|<.*|\$.*|%[sd(].*|\{.*|\[redacted:.*|your.*|(?:the|my|a|an|some)[_ -].*|\.{3}.*|…"
    r"|!(?:vault|secret|env\w*|ref|sub|include)\b.*|\([\w ]*\)?"
    r"|none|null|nil|true|false|undefined|required|optional|missing|invalid|expired|wrong|string|str|text|bytes|bool"
    r"|int|any|example|changeme|change_me|redacted|hidden|masked|placeholder"
    r"|(?:pass(?:word|wd|phrase)?|pwd|secret|token|(?:api|access|secret|private)?[_-]?key|auth|value)s?",
    re.IGNORECASE | re.DOTALL,
)
_CODE = lazy_pattern(r"[A-Za-z_][\w.]*[(\[].*|[A-Za-z_]+(?:\.[A-Za-z_]+)+[)\]}:.]*", re.DOTALL)
_CAMEL_CASE = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_STRONG_NAME = lazy_pattern(
    r"(?:^|_)(?:password|passwd|passphrase|passcode|pwd|pass|secret|client_secret|api_?key|secret_key|private_key"
    r"|access_key|secret_access_key|signing_key|encryption_key|auth_key|account_key|access_token|refresh_token|id_token"
    r"|auth_token|bearer_token|api_token|session_token|authorization|cookie|set_cookie|bearer)$|(?:密码|口令)$"
)
_WEAK_NAME = lazy_pattern(
    r"(?:^|_)(?:[a-z]*token|[a-z]*password|[a-z]*secret|credential|session_?(?:id|key)|auth|sid)$|(?:密钥|令牌)$"
)
_BOX_NAME = lazy_pattern(r"(?:^|_)(?:cookies|secrets|credentials|tokens|passwords|api_?keys|authorization)$")
_HARMLESS_NAME = lazy_pattern(
    r"(?:^|_)(?:next|page|prev|previous|continuation|sync|start|cursor|eos|bos|pad|max|sub)_?"
)

_MAX_COMMAND_CHARS = 120  # between a command and its option; less than what `RedactedStream` keeps as context
_CODECS = lazy_pattern(r"(?:base|utf|sha|md|aes|bcrypt|argon|pbkdf|scrypt|rot|rfc|ascii|http)[-_]?\d*.*", re.IGNORECASE)

_WEAK_LENGTH, _STRONG_LENGTH, _LETTERS_LENGTH, _LONG = 8, 4, 6, 16


def may_hold(text: str) -> bool:
    """False: nothing in `text` looks like a secret. True for many a harmless text, too; costs next to nothing."""
    if "-" in text and _may_hold_dashed(text):
        return True
    if "_" in text and (
        "sk_" in text
        or "rk_" in text
        or "gh" in text
        or "github" in text
        or "npm_" in text
        or "hf_" in text
        or "whsec_" in text
        or "lsv2_" in text
    ):
        return True
    low = text.lower()
    if low != text and (  # what has capitals in it
        "eyJ" in text or "AKI" in text or "ASIA" in text or "AIza" in text or "SG." in text or "LTAI" in text
    ):
        return True
    if "ya29." in text or "hvs." in text or "bearer" in low or "basic" in low or "pass" in low or "identified" in low:
        return True
    if not text.isascii() and ("密" in text or "令" in text or "私钥" in text):
        return True
    if "/" in text and "hook" in low:
        return True
    if ":" not in text and "=" not in text and "：" not in text and "<" not in text:
        return False
    if "token" in low or "pwd" in low or "secret" in low or "key" in low or "auth" in low or "cookie" in low:
        return True
    if (low != text and ":AA" in text) or ("=" in text and "sig=" in low):
        return True
    return "credential" in low or "session" in low or "sid" in low or ("@" in low and "://" in low)


def _may_hold_dashed(text: str) -> bool:
    """Whether a dash in `text` may be part of a secret, or of an option of a command that takes one."""
    if _DASHED_SECRET.search(text):
        return True
    if not _DASHED_OPTION.search(text):
        return False
    low = text.lower()
    return any(word in low for word in _OPTION_WORDS)


_VENDOR_PREFIXES = (
    *("AKIA", "ASIA", "AIza", "ya29.", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "glptt-"),
    *("gldt-", "glrt-", "glsoat-", "glcbt-", "xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"),
    *("npm_", "pypi-", "hf_", "SG.", "sk_", "rk_", "whsec_", "sk-", "eyJ"),
    *("LTAI", "AKID", "gsk_", "xai-", "pplx-", "lsv2_", "hvs.", "GOCSPX-"),
)
"""How the secrets of vendors begin (`_VENDOR`)."""

_DASHED_SECRET = lazy_pattern(
    r"-(?:BEGIN(?=[ -]|\Z)|(?<=sk-)|(?<=xai-)|(?<=xapp-|pypi-|pplx-|gldt-|glrt-|xox[abeoprs]-)"
    r"|(?<=glpat-|glptt-|glcbt-)|(?<=glsoat-|GOCSPX-))"
)
"""How those of them that have a dash begin, up to it; and the head of a PEM file."""

_DASHED_OPTION = lazy_pattern(r"-(?:-|\Z|(?<![^\W_]-)[^\W\d_])")
"""What may be an option of a command: a dash before a letter, not after a letter or digit; two dashes; a last one."""

_OPTION_WORDS = ("curl", "wget", "sql", "maria", "pwd", "token", "secret", "key", "login")


def may_begin(word: str) -> bool:
    """False: a text that begins with the letters of `word` contains no vendor's secret from here on.

    For a word that is still being written: whatever follows it, the answer holds.
    """
    plain = word.rstrip(",.!?")
    return not plain.isalpha() or any(head.startswith(plain) or plain.startswith(head) for head in _VENDOR_PREFIXES)


def partial_secret_at(text: str) -> int:
    """Where a secret may have begun that has not ended yet; the length of the text if nowhere.

    For a text that is shown while it is being written: its last word is left to `may_begin`, private keys to the
    caller, who sees `-----`. A name in JSON that announces a secret leaves everything after it undecided.
    """
    end = len(text)
    for name in _NAME_OF_JSON.finditer(text):
        if secret_name_strength(name[1]):
            end = name.end()
            break
    for block in find_blocks(text[:end]):
        if block.is_open and secret_name_strength(block.name):
            end = block.start
    for begins, ends in _OPENINGS:
        for match in begins.finditer(text, 0, end):
            start = match.end()
            quote = _QUOTE.match(text, start)
            over = ends.search(text, start) if quote is None else _closing_pattern(quote[0]).match(text, quote.end())
            if over is None:
                end = start
                break
    return end


def open_line_at(text: str) -> int:
    """Where the line begins that announces a secret on the lines after `text`; the length of the text if none does."""
    for block in find_blocks(text):
        if block.is_open and secret_name_strength(block.name):
            return block.line_start
    for match in _NAMED_NAME.finditer(text):
        if match.end() == len(text) and "\n" in match["mark"]:
            return text.rfind("\n", 0, match.start()) + 1
    return len(text)


@lru_cache(maxsize=32)
def _closing_pattern(quote: str) -> re.Pattern[str]:
    """A value up to the quote that closes it, which is written like the one before it."""
    mark = re.escape(quote)
    return re.compile(rf"(?:(?!{mark})(?:\\.|[^\\\n]))*+{mark}")


def redact_patterns(text: str) -> str:
    """`text` without what looks like a secret."""
    if "-----BEGIN" in text:
        text = _PEM.sub(redaction_label("private_key"), text)
    text = _VENDOR.sub(_redact_vendor, text)
    if ":AA" in text:
        text = _TELEGRAM.sub(_redact_telegram, text)
    if "://" in text:
        text = _URL.sub(_redact_url, text)
    low = text.lower()
    if "hook" in low:
        text = _WEBHOOK.sub(_redact_webhook, text)
    if "sig=" in low:
        text = _SIGNATURE.sub(f"sig={redaction_label('signature')}", text)
    if "-" in text:
        text = _redact_options(text)
    if "</" in text:
        text = _TAGGED_VALUE.sub(_redact_tagged_value, text)
    if "password" in low or "identified" in low:
        text = _SQL_ACCOUNT.sub(_redact_sql_password, text)
    text = _SAID_VALUE.sub(_redact_said_value, text)
    if "authorization" in low:
        text = _AUTHORIZATION.sub(_redact_authorization, text)
    if "bearer" in low or "basic" in low:
        text = _SCHEME.sub(_redact_scheme, text)
    if "cookie" in low:
        text = _COOKIE.sub(_redact_cookie, text)
    return _NAMED_VALUE.sub(_redact_named_value, _redact_blocks(text))


def _redact_blocks(text: str) -> str:
    """The text without the secrets that are indented below their names."""
    if "|" not in text and ">" not in text:
        return text
    parts, position = list[str](), 0
    for block in find_blocks(text):
        value, strength = text[block.start : block.end], secret_name_strength(block.name)
        is_secret_text = is_secret(value, strength) if strength == "strong" else any(map(looks_random, value.split()))
        if strength and is_secret_text:
            parts += text[position : block.start], redaction_label(block.name)
            position = block.end
    return "".join((*parts, text[position:]))


@lru_cache(maxsize=4096)
def secret_name_strength(name: str) -> Strength:
    """What the name of a field, header or variable says about its value."""
    if len(name) > 120:
        return ""
    plain = _CAMEL_CASE.sub("_", name.strip()).lower().replace("-", "_").replace(" ", "_").replace(".", "_")
    if _STRONG_NAME.search(plain):
        return "strong"
    if _HARMLESS_NAME.search(plain):
        return ""
    if _BOX_NAME.search(plain):
        return "box"
    return "weak" if _WEAK_NAME.search(plain) else ""


def is_secret(value: str, kind: Strength) -> bool:
    """Whether the value of a field whose name has this strength must be hidden."""
    if not kind or _PLACEHOLDER.fullmatch(value.strip()):
        return False
    return len(value) >= _STRONG_LENGTH if kind == "strong" else looks_random(value)


def looks_random(value: str) -> bool:
    """True for what no person would write as a word or a number: long enough, in one piece, of mixed characters."""
    if len(value) < _WEAK_LENGTH or any(char.isspace() for char in value):
        return False
    digits = sum(char.isdigit() for char in value)
    letters = sum(char.isalpha() for char in value)
    if digits and letters:
        return True
    mixed = value.lower() != value and value.upper() != value and value[1:].lower() != value[1:]
    return (mixed and len(value) >= _LONG) or (letters + digits < len(value) and mixed)


def _redact_vendor(match: re.Match[str]) -> str:
    token, name = match[0].rstrip(".-"), match.lastgroup or "secret"
    tail = match[0][len(token) :]
    if name == "api_key" and not (looks_random(token[3:]) or max(map(len, re.split("[-_]", token))) >= _LONG):
        return match[0]  # sk-learn-and-other-words
    if name == "jwt" and min(map(len, token.split(".")[:2])) < _WEAK_LENGTH:
        return match[0]
    if name == "jwt" and "." not in token and len(token) < 2 * _LONG:
        return match[0]
    if name in ("slack_token", "pypi_token", "gitlab_token") and not any(char.isdigit() for char in token):
        return match[0]
    return redaction_label(name) + tail


def _redact_url(match: re.Match[str]) -> str:
    user, password = match[1], match[2]
    if user.startswith("[redacted"):
        return match[0]
    if password is None:
        return f"://{redaction_label('url_user')}@" if len(user) >= _LONG and looks_random(user) else match[0]
    if _PLACEHOLDER.fullmatch(password):
        return match[0]
    return f"://{user}:{redaction_label('url_password')}@"


def _redact_telegram(match: re.Match[str]) -> str:
    return match[0][: match.start(1) - match.start()] + redaction_label("telegram_token")


def _redact_webhook(match: re.Match[str]) -> str:
    secret = match[2].rstrip("/-_")
    return match[0] if secret.isalpha() else f"{match[1]}{redaction_label('webhook')}{match[2][len(secret) :]}"


def _redact_options(text: str) -> str:
    """The text without the passwords in options of commands."""
    low = text.lower()
    if any(name in low for name in ("pass", "pwd", "token", "secret", "key")):
        text = _FLAG_VALUE.sub(_redact_flag, text)
    if _COMMANDS.search(text) is not None:
        text = _USER_OPTION.sub(_redact_user_option, text)
        text = _SSHPASS.sub(_redact_announced_password, text)
        text = _PASSWORD_OPTION.sub(_redact_password_option, text)
    if "login" in low:
        text = _LOGIN_OPTION.sub(_redact_announced_password, text)
    return text


def _command_before(match: re.Match[str]) -> str:
    """The last command that stands shortly before an option in the same line."""
    line = match.string[max(0, match.start() - _MAX_COMMAND_CHARS) : match.start()].rpartition("\n")[2]
    names = _COMMANDS.findall(line)
    return names[-1] if names else ""


def _redact_flag(match: re.Match[str]) -> str:
    value, flag = match["quoted"] or match["bare"], match["flag"].lower()
    text = value if match["quoted"] else value.rstrip(")]}.:!?")
    if _HARMLESS_NAME.search(flag.replace("-", "_")):
        return match[0]  # --next-token
    is_strong = re.search(_STRONG_WORD, flag) is not None or flag in ("pass", "pwd")
    if text[:1] in "-/<[{$|" or text.isupper() or not (_is_password(text) if is_strong else looks_random(text)):
        return match[0]
    return _with_label(match, text, flag)


def _redact_said_value(match: re.Match[str]) -> str:
    """`password is …`: prose, unless the value is in quotes, ends its sentence or is no word."""
    value, name = match["quoted"] or match["bare"], match["said"].lower()
    text = value.rstrip(")]}.:!?")
    if not text.isascii() or _CODECS.fullmatch(text) or not _is_password(text):
        return match[0]
    following = match.string[match.end() : match.end() + 1]
    is_plain = text.replace("-", "").replace("'", "").isalpha() or (text.isdigit() and len(text) < _LETTERS_LENGTH)
    if is_plain and match["quoted"] is None and (following in (" ", "\t") or "-" in text or "'" in text):
        return match[0]
    return _with_label(match, text, name)


def _redact_tagged_value(match: re.Match[str]) -> str:
    name, text = match[1], match[2].strip()
    strength = secret_name_strength(name)
    if not strength or not (_is_password(text) if strength == "strong" else looks_random(text)):
        return match[0]
    return match[0][: match.start(2) - match.start()] + redaction_label(re.sub(r"[^\w.-]", "_", name))


def _redact_user_option(match: re.Match[str]) -> str:
    if _command_before(match) not in ("curl", "wget") or _PLACEHOLDER.fullmatch(match[4]):
        return match[0]
    return f"{match[1]}{match[2]}{match[3]}:{redaction_label('password')}"


def _redact_announced_password(match: re.Match[str]) -> str:
    return match[0] if _PLACEHOLDER.fullmatch(match[2]) else f"{match[1]}{redaction_label('password')}"


def _redact_password_option(match: re.Match[str]) -> str:
    command = _command_before(match)
    if not command.startswith(("mysql", "mariadb")) or _PLACEHOLDER.fullmatch(match[2]) or match[2].isupper():
        return match[0]
    return f"-p{match[1]}{redaction_label('password')}"


def _redact_sql_password(match: re.Match[str]) -> str:
    return match[0] if _PLACEHOLDER.fullmatch(match["quoted"]) else _with_label(match, match["quoted"], "password")


def _with_label(match: re.Match[str], text: str, name: str) -> str:
    """A match with a label in place of the value, which begins with `text`."""
    start = match.start("quoted" if match["quoted"] is not None else "bare") - match.start()
    return f"{match[0][:start]}{redaction_label(name.replace(' ', '_'))}{match[0][start + len(text) :]}"


def _is_password(text: str) -> bool:
    """Whether a value that is announced as a password is one, and neither a placeholder nor a word of prose or code."""
    if _PLACEHOLDER.fullmatch(text) or _CODE.fullmatch(text):
        return False
    if text.replace("_", "").isalpha():
        return len(text) >= _LETTERS_LENGTH and text.isascii() and "_" not in text and not is_ordinary_word(text)
    return len(text) >= _STRONG_LENGTH


def _redact_scheme(match: re.Match[str]) -> str:
    scheme, gap, token = match.groups()
    if scheme.lower() == "basic" and not _is_basic_credentials(token):
        return match[0]
    if not looks_random(token):
        return match[0]
    return f"{scheme}{gap}{redaction_label(scheme.lower())}"


def _is_basic_credentials(token: str) -> bool:
    try:
        return b":" in base64.b64decode(token + "=" * (-len(token) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def _redact_authorization(match: re.Match[str]) -> str:
    mark, scheme, gap, rest = match.groups()
    first = rest.split(maxsplit=1)[0] if rest.strip() else ""
    if not first or _PLACEHOLDER.fullmatch(first):
        return match[0]
    head = f"{match[0][:13]}{mark}{scheme or ''}{gap or ''}{redaction_label('authorization')}"
    if scheme is None:
        return head + rest[len(first) :] if looks_random(first) and not _CODE.fullmatch(first) else match[0]
    if scheme.lower() in ("bearer", "basic", "token", "apikey", "api-key", "negotiate", "ntlm"):
        return head + rest[len(first) :] if not first.isalpha() or len(first) >= _LONG else match[0]
    return head if "=" in rest else match[0]  # parameters to the end of the line


def _redact_cookie(match: re.Match[str]) -> str:
    return f"{match[0][:6]}{match[1]}{redaction_label('cookie')}" if "=" in match[2] else match[0]


def _redact_named_value(match: re.Match[str]) -> str:
    quoted, bare = match["quoted"], match["bare"]
    strong, name = match["strong"] is not None and not match["rest"], match["name"]
    whole = match[0]
    if name.lower() == "pwd" and (quoted or bare or "")[:1] in ("/", "~"):
        return whole  # the working directory
    if not strong and _HARMLESS_NAME.search(f"{_prefix_of_name(match)}{name.lower()}"):
        return whole  # next_page_token=…
    if quoted is not None:
        text = quoted
        hide = is_secret(text, "strong" if strong else "weak") and name.lower() not in text.lower()
        tail = ""
    else:
        text = bare.rstrip(")]}.:!?。，")
        tail = bare[len(text) :]
        hide = _is_bare_secret(text, strong, match["mark"], name)
    if not hide or not text:
        return whole
    start = match.start("quoted" if quoted is not None else "bare") - match.start()
    return f"{whole[:start]}{redaction_label(re.sub('[ -]', '_', name.lower()))}{tail}"


def _prefix_of_name(match: re.Match[str]) -> str:
    """The text directly before a name that belongs to it."""
    text, end = match.string, match.start()
    start = end
    while start > max(0, end - 24) and (text[start - 1].isalnum() or text[start - 1] in "_-"):
        start -= 1
    return text[start:end].lower().replace("-", "_")


def _is_bare_secret(text: str, strong: bool, mark: str, name: str) -> bool:
    """Whether a value without quotes is a secret, and neither prose nor code."""
    if _PLACEHOLDER.fullmatch(text) or _CODE.fullmatch(text) or (name.lower() == "pwd" and text[:1] in "/~.\\"):
        return False
    if not strong:
        return looks_random(text)
    if mark == "=" and text.isalpha():
        return len(text) >= _LETTERS_LENGTH and text.isascii()
    return _is_password(text)
