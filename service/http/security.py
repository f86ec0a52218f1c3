"""Headers that tell browsers to be careful, on every answer.

Nothing that this service answers is a page to be framed, sniffed or stored; the
one page there is, /docs, brings a policy of its own (`http.page`).
"""

Header = tuple[bytes, bytes]

ALWAYS: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
)
POLICY: Header = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
UNSTORED: Header = (b"cache-control", b"no-store")


def secured(headers: list[Header]) -> list[Header]:
    """The headers of an answer, with ours behind them where it does not say otherwise itself.

    A file with an ETag is one of the page's own, the same for everybody: it may be kept.
    """
    names = {name.lower() for name, _ in headers}
    added = list(ALWAYS)
    if POLICY[0] not in names:
        added.append(POLICY)
    if not names & {UNSTORED[0], b"etag"}:
        added.append(UNSTORED)
    return headers + added
