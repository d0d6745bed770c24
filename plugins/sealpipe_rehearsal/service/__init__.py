"""The service of the specification, read a second time: nothing here imports sealpipe or cryptography.

One misreading can therefore not cancel itself out between the client and its rehearsal. It needs only
SHA-256, HMAC, constant-time comparison, SQLite and Starlette, as it only ever handles ciphertext.

    app          one ASGI application; which door a path belongs to
    gateway      /v1: credential, rate, scope, then the route (tables ROUTES and CHECKS)
    credentials  the bearer header, keys, scopes, custody levels
    plans        what an account's plan allows
    refusals     every refusal: name -> status, error_code, message
    shares       the share routes            rules    the members of a share, one rule each
    access_log   who opened a share          capabilities   what a key can do (both `extended` only; with an etag)
    mcp          POST /v1/mcp: HTTP          mcp_messages, mcp_tools, mcp_work   JSON-RPC, the tools, what they do
    events       what is for whom            webhooks   endpoints and signatures; delivering, posting   sending
    idempotency  Idempotency-Key             paging   page and limit of the lists
    recipient    outside /v1: how the holder of a link gets the ciphertext
    pages        the pages at links, and the headers that they are served with
    control      outside /v1: keys, accounts, clock, log, faults, webhooks (webhook_control), reset
    openapi      /v1 as an OpenAPI document, read off the tables
    faults       ONE table of what can go wrong on purpose (fault_lines, fault_answers: how; fault_checks: parameters)
    fault_rows   a plan as written -> rows    fault_plan  which row happens to which request
    exchange     one request and its connection, as a fault has them
    store, log, clock, context               what all of them stand on
"""
