"""What egress reports to the model in a run: refused requests, and requests without a usable response."""

from __future__ import annotations

from taoloop.errors import EgressFailed
from taoloop.tools.texts import ToolTexts

TEXTS = ToolTexts(
    {
        # URLs and requests
        "bad_url": "This is not a usable URL: {reason}.",
        "bad_url_hint": "Give a complete URL such as https://example.com/page.",
        "no_host": "it has no host",
        "no_scheme": "it has no scheme",
        "not_a_host": "{host!r} is not a host",
        "not_a_port": "{port} is not a port",
        "not_http": "the scheme {scheme!r} is not http or https",
        "backslash": "it contains a backslash, which programs interpret differently",
        "userinfo": "it contains a user or a password",
        "userinfo_hint": "Remove the part before the @.",
        "unsendable": "The request was not sent: {reason}.",
        "unsendable_hint": "Only the operator of this tool can change that.",
        "not_a_method": "{method!r} is not a method",
        "header_characters": "the name or the value of the header {name!r} has characters that HTTP cannot carry there",
        # refused by the rules
        "refused": "Requests to {target} are not allowed: {reason}.",
        "refused_hint": "Use another address.",
        "refused_hint_allow": "Use another address; the operator can add {entry!r} to `allow` in the egress rules "
        "of this tool.",
        "refused_hint_deny": "Use another address; the operator can remove {entry!r} from `deny` in the egress rules "
        "of this tool.",
        "scheme_refused": "The scheme {scheme!r} is not allowed.",
        "scheme_refused_hint": "Use one of: {schemes}.",
        "denied": "it is on the deny list",
        "not_allowed": "it is not on the allow list",
        "port_refused": "port {port} is not an allowed port ({ports})",
        "no_ports": "none",
        "no_address": "it has no address",
        "not_an_address": "it resolves to {address!r}, which is not an address",
        "is_address": "it is {address}",
        "resolves_to": "it resolves to {address}",
        "address_denied": "{address_is}, which is on the deny list",
        "address_not_allowed": "{address_is}, which is not on the allow list",
        "address_not_public": "{address_is}, which is not a public address",
        "address_metadata": "{address_is}, the metadata service of a cloud",
        # redirects
        "redirect_to_bad_url": "{target} redirects to a URL that cannot be followed. {reason}",
        "redirect_to_bad_url_hint": "Use another URL.",
        "redirect_unencrypted": "{target} redirects to {next_target} without encryption; that is not followed.",
        "redirect_unencrypted_hint": "Use that URL directly if it is intended.",
        "too_many_redirects": "{target} redirects again after {count} redirects; the last one points to {next_target}.",
        "too_many_redirects_hint": "Use the final URL of the page, if it is known.",
        # failed requests
        "name_not_found": "The host {host} was not found: {reason}.",
        "name_not_found_hint": "Check the name; try again later if it is right.",
        "unreachable": "{target} cannot be reached: {reason}.",
        "unreachable_hint": "Check the URL; try again later if it is correct.",
        "no_connection": "no connection within {seconds:g} s",
        "not_resolved": "the host {host} was not resolved in time",
        "tls_failed": "{target} cannot be trusted, or does not speak TLS: {reason}.",
        "tls_failed_hint": "Check the URL; this machine must trust the certificate of a private server.",
        "no_certificates": "The certificates that this machine trusts cannot be read: {reason}.",
        "no_certificates_hint": "Check the files that SSL_CERT_FILE and SSL_CERT_DIR name.",
        "timeout": "{target} sent no complete response within {seconds:g} s.",
        "broken": "{target} closed the connection, or does not speak HTTP: {reason}.",
        "broken_hint": "Try again later, or use another URL.",
        "timeout_hint": "Try again later, or use another URL.",
        "wrong_type": "{target} responded with {media_type}; only {accepted} is accepted.",
        "no_media_type": "no media type",
        "wrong_type_hint": "Use the URL of another representation.",
        "too_large": "{target} sent more than {max_bytes:,} bytes; the rest was not read.",
        "unknown_encoding": "{target} encoded its response as {encodings}, which was not accepted.",
        "broken_body": "The compressed response of {target} is broken: {reason}.",
        "not_decompressible": "it cannot be decompressed",
        "truncated": "it is truncated",
    },
)


def egress_failed(
    name: str, code: str, /, *, retryable: bool | None = None, was_sent: bool = True, **values: object
) -> EgressFailed:
    """The error with the text `name` for a request without a usable response; its other arguments as `EgressFailed`."""
    return TEXTS.run_error(EgressFailed, name, values, code=code, retryable=retryable, was_sent=was_sent)
