"""The service: the specification implemented again. It imports nothing of ours.

So a misreading of the specification in the client is not repeated here. The service handles only
ciphertext: SHA-256, HMAC, constant-time comparison, SQLite and Starlette are all that a rehearsal
of it needs. Whoever runs it gives it store, clock, randomness and journal (`context.Service`), and
may stand before it (`app.Around`).

    app.py             the ASGI application; which handler a path belongs to
    gateway.py         /v1: credential, rate limit, scope, then the route (tables ROUTES and CHECKS)
    credentials.py     API keys, scopes, custody levels
    plans.py           plan limits
    responses.py       ONE table of refusals
    json_bodies.py     strict JSON; rules of the create bodies
    checks.py          what one member may be
    creation.py        what both creates do, in order
    shares.py          share routes and stats
    requests.py        request routes
    listing.py         counts and pages of both
    sweeping.py        what time does to both
    idempotency.py     Idempotency-Key
    extended.py        access log, capabilities (`extended` only)
    mcp.py             POST /v1/mcp
    mcp_*.py           its JSON-RPC messages, its tools, and what handles each
    webhooks.py        endpoints, signatures, the queue
    webhook_*.py       sending them
    public_addresses.py  where a server sends them
    mail.py            notices by e-mail, which wait in the same queue
    openapi.py         /v1 as an OpenAPI document, made from the tables
    share_link.py      outside /v1: what the page at a share's link asks for
    request_link.py    outside /v1: what the pages at a collect link and at an access link ask for
    pages.py           the files of page/ and their headers
    page/              the web pages at its links: a third reading, in WebCrypto
    context.py         Service, HTTP request and call
    supervising.py     starts the processes of a server; `worker.py` is one of them
    serving.py         how uvicorn serves it
    tls.py             the certificate of a server, which is renewed while it serves
    front.py           who is answered by a server, and how often
    addresses.py       who calls, behind proxies or not
    connections.py     how many connections, how fast, and what is no request
    flood.py           strangers who ask too much
    early.py           answers that wait for no body
    watching.py        the id of each request of a server, and its line of the log
    routes.py          the names of routes there
    logs.py            what a server tells
    meters.py          what it counts, in memory that its processes share
    metrics.py         the numbers as text, and their listener
    sealing.py         the secrets of webhooks, sealed under a key that is not in the database
    administration.py  keys, accounts and custody, for whoever runs it
    database/          the data: what is decided is decided there
    journal.py, clock.py   the base
"""
