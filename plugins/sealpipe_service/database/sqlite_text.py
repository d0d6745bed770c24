"""Tables and statements for sqlite3: generated, see `compiling`."""

from __future__ import annotations

from collections.abc import Mapping

SCHEMA: tuple[str, ...] = (
    (
        "CREATE TABLE accesses ( number INTEGER NOT NULL PRIMARY KEY "
        "AUTOINCREMENT, share BIGINT NOT NULL, accessed DOUBLE NOT NULL, "
        "accessed_at TEXT NOT NULL, accessed_ip TEXT NOT NULL, platform TEXT NOT "
        "NULL, user_agent TEXT, failed_passcode BIGINT NOT NULL, signed_in BIGINT "
        "NOT NULL, space TEXT NOT NULL )"
    ),
    (
        "CREATE TABLE accounts ( number INTEGER NOT NULL PRIMARY KEY "
        'AUTOINCREMENT, name TEXT NOT NULL, seen_from DOUBLE NOT NULL, "plan" '
        "TEXT NOT NULL, numbers TEXT NOT NULL, view_protection BIGINT NOT NULL, "
        "zero_knowledge_enrolled BIGINT NOT NULL, zero_knowledge_feature BIGINT "
        "NOT NULL )"
    ),
    (
        "CREATE TABLE clock ( id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "
        "offset_seconds DOUBLE NOT NULL, CHECK (id = 1) )"
    ),
    (
        "CREATE TABLE counts ( what TEXT NOT NULL, space TEXT NOT NULL, live "
        "BIGINT NOT NULL, ended BIGINT NOT NULL, PRIMARY KEY (what, space) )"
    ),
    (
        "CREATE TABLE deliveries ( number INTEGER NOT NULL PRIMARY KEY "
        "AUTOINCREMENT, webhook TEXT NOT NULL, body BLOB NOT NULL, created_at "
        "DOUBLE NOT NULL, attempts BIGINT NOT NULL, due DOUBLE, leased_until "
        "DOUBLE, state TEXT NOT NULL, answered TEXT )"
    ),
    (
        "CREATE TABLE idempotency ( key_id TEXT NOT NULL, name TEXT NOT NULL, "
        "body_mac TEXT NOT NULL, answer BLOB NOT NULL, created_at DOUBLE NOT "
        "NULL, PRIMARY KEY (key_id, name) )"
    ),
    (
        "CREATE TABLE keys ( number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "
        "key_id TEXT NOT NULL, account TEXT NOT NULL, organization TEXT, space "
        "TEXT NOT NULL, name TEXT NOT NULL, auth_sha256 TEXT NOT NULL, scopes "
        "TEXT NOT NULL, custody_requested BIGINT NOT NULL, custody_public_key "
        "TEXT, created_at DOUBLE NOT NULL, last_used_at DOUBLE, revoked_at "
        "DOUBLE, compromised_at DOUBLE, granted_at DOUBLE, custody_sha256 TEXT, "
        "UNIQUE (key_id) )"
    ),
    (
        "CREATE TABLE rates ( key_id TEXT NOT NULL, tokens DOUBLE NOT NULL, at "
        "DOUBLE NOT NULL, PRIMARY KEY (key_id) )"
    ),
    (
        "CREATE TABLE requests ( number INTEGER NOT NULL PRIMARY KEY "
        "AUTOINCREMENT, short_code TEXT NOT NULL, space TEXT NOT NULL, owner TEXT "
        "NOT NULL, key_id TEXT NOT NULL, created_at DOUBLE NOT NULL, title TEXT "
        "NOT NULL, public_key TEXT NOT NULL, fields TEXT NOT NULL, description "
        "TEXT, expired_at TEXT NOT NULL, expires DOUBLE NOT NULL, max_submission "
        "BIGINT, received BIGINT NOT NULL, access_counts_left BIGINT, "
        "passcode_sha256 TEXT, requires_login BIGINT, requires_mfa BIGINT, "
        "restricted_domain TEXT, ip_whitelist TEXT, organization_id TEXT, "
        "ended_at DOUBLE, ended_by TEXT, UNIQUE (short_code) )"
    ),
    (
        "CREATE TABLE service ( id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "
        "tag TEXT NOT NULL, CHECK (id = 1) )"
    ),
    (
        "CREATE TABLE service_version ( version_num VARCHAR(32) NOT NULL, "
        "CONSTRAINT service_version_pkc PRIMARY KEY (version_num) )"
    ),
    (
        "CREATE TABLE shares ( number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "
        "short_code TEXT NOT NULL, space TEXT NOT NULL, owner TEXT NOT NULL, "
        "key_id TEXT NOT NULL, created_at DOUBLE NOT NULL, encryption_type TEXT "
        "NOT NULL, access_token_sha256 TEXT NOT NULL, passcode_verifier_sha256 "
        "TEXT, title TEXT, description TEXT, expired_at TEXT, expires DOUBLE, "
        "access_counts_left BIGINT, passcode_attempts_left BIGINT NOT NULL, "
        "item_key_wrap TEXT, custody TEXT NOT NULL, timed_view BIGINT, notify_on "
        "TEXT, organization_id TEXT, ended_at DOUBLE, ended_by TEXT, data TEXT, "
        "UNIQUE (short_code) )"
    ),
    (
        "CREATE TABLE submissions ( number INTEGER NOT NULL PRIMARY KEY "
        "AUTOINCREMENT, short_code TEXT NOT NULL, request BIGINT NOT NULL, "
        "created_at TEXT NOT NULL, encryption_type TEXT NOT NULL, data TEXT NOT "
        "NULL, UNIQUE (short_code) )"
    ),
    (
        "CREATE TABLE views ( space TEXT NOT NULL, day TEXT NOT NULL, count "
        "BIGINT NOT NULL, PRIMARY KEY (space, day) )"
    ),
    (
        "CREATE TABLE webhooks ( number INTEGER NOT NULL PRIMARY KEY "
        "AUTOINCREMENT, id TEXT NOT NULL, account TEXT NOT NULL, url TEXT NOT "
        "NULL, secret TEXT NOT NULL, previous_secret TEXT, created_at DOUBLE NOT "
        "NULL, rotated_at DOUBLE, UNIQUE (id) )"
    ),
    "CREATE INDEX accesses_of ON accesses (share, number)",
    "CREATE INDEX accesses_old ON accesses (space, accessed)",
    "CREATE INDEX accounts_by_name ON accounts (name, number)",
    (
        "CREATE INDEX deliveries_due ON deliveries (due, number) WHERE due IS NOT "
        "NULL"
    ),
    (
        "CREATE INDEX deliveries_leased ON deliveries (webhook) WHERE "
        "leased_until IS NOT NULL"
    ),
    (
        "CREATE INDEX deliveries_waiting ON deliveries (webhook) WHERE due IS NOT "
        "NULL"
    ),
    "CREATE INDEX idempotency_old ON idempotency (created_at)",
    "CREATE INDEX keys_of ON keys (space)",
    (
        "CREATE INDEX requests_due ON requests (space, expires) WHERE ended_at IS "
        "NULL AND expires IS NOT NULL"
    ),
    (
        "CREATE INDEX requests_ended ON requests (space, ended_at, number) WHERE "
        "ended_at IS NOT NULL"
    ),
    (
        "CREATE INDEX requests_live ON requests (space, number) WHERE ended_at IS "
        "NULL"
    ),
    (
        "CREATE INDEX requests_next ON requests (expires) WHERE ended_at IS NULL "
        "AND expires IS NOT NULL"
    ),
    (
        "CREATE INDEX shares_due ON shares (space, expires) WHERE ended_at IS "
        "NULL AND expires IS NOT NULL"
    ),
    (
        "CREATE INDEX shares_ended ON shares (space, ended_at, number) WHERE "
        "ended_at IS NOT NULL"
    ),
    (
        "CREATE INDEX shares_live ON shares (space, number) WHERE ended_at IS "
        "NULL"
    ),
    (
        "CREATE INDEX shares_next ON shares (expires) WHERE ended_at IS NULL AND "
        "expires IS NOT NULL"
    ),
    (
        "CREATE INDEX shares_sealed ON shares (ended_at) WHERE ended_at IS NOT "
        "NULL AND data IS NOT NULL"
    ),
    "CREATE INDEX submissions_of ON submissions (request, number)",
    "CREATE INDEX webhooks_of ON webhooks (account, number)",
)

STATEMENTS: Mapping[str, str] = {
    "version": "SELECT service_version.version_num FROM service_version",
    "set_version": "INSERT INTO service_version (version_num) VALUES (:version)",
    "now": (
        "SELECT clock_timestamp() + (SELECT clock.offset_seconds FROM clock) AS "
        "now"
    ),
    "start_clock": (
        "INSERT INTO clock (id, offset_seconds) VALUES (1, 0.0) ON CONFLICT DO "
        "NOTHING"
    ),
    "tag": "SELECT service.tag FROM service WHERE service.id = 1",
    "set_tag": (
        "INSERT INTO service (id, tag) VALUES (1, :new_tag) ON CONFLICT DO "
        "NOTHING RETURNING tag"
    ),
    "account": (
        "SELECT accounts.number, accounts.name, accounts.seen_from, "
        'accounts."plan", accounts.numbers, accounts.view_protection, '
        "accounts.zero_knowledge_enrolled, accounts.zero_knowledge_feature FROM "
        "accounts WHERE accounts.name = :account ORDER BY accounts.number DESC "
        "LIMIT 1 OFFSET 0"
    ),
    "current_accounts": (
        "SELECT accounts.number, accounts.name, accounts.seen_from, "
        'accounts."plan", accounts.numbers, accounts.view_protection, '
        "accounts.zero_knowledge_enrolled, accounts.zero_knowledge_feature FROM "
        "accounts WHERE accounts.number IN (SELECT max(accounts.number) AS max_1 "
        "FROM accounts GROUP BY accounts.name) ORDER BY accounts.name"
    ),
    "add_account": (
        'INSERT INTO accounts (name, seen_from, "plan", numbers, view_protection, '
        "zero_knowledge_enrolled, zero_knowledge_feature) VALUES (:name, "
        ":seen_from, :plan, :numbers, :view_protection, :zero_knowledge_enrolled, "
        ":zero_knowledge_feature)"
    ),
    "forget_old_accounts": (
        "DELETE FROM accounts WHERE accounts.name = :account AND accounts.number "
        "< (SELECT coalesce(max(CASE WHEN (accounts.seen_from <= "
        "clock_timestamp() + (SELECT clock.offset_seconds FROM clock) OR "
        "accounts.seen_from > (SELECT clock_timestamp() + clock.offset_seconds AS "
        "anon_1 FROM clock) + 90.0) THEN accounts.number END), "
        "min(accounts.number)) AS coalesce_1 FROM accounts WHERE accounts.name = "
        ":account)"
    ),
    "caller": (
        "SELECT keys.number, keys.key_id, keys.account, keys.organization, "
        "keys.space, keys.name, keys.auth_sha256, keys.scopes, "
        "keys.custody_requested, keys.custody_public_key, keys.created_at, "
        "keys.last_used_at, keys.revoked_at, keys.compromised_at, "
        "keys.granted_at, keys.custody_sha256, clock_timestamp() + (SELECT "
        "clock.offset_seconds FROM clock) AS now, accounts.seen_from AS "
        'account_seen_from, accounts."plan" AS account_plan, accounts.numbers AS '
        "account_numbers, accounts.view_protection AS account_view_protection, "
        "accounts.zero_knowledge_enrolled AS account_zero_knowledge_enrolled, "
        "accounts.zero_knowledge_feature AS account_zero_knowledge_feature FROM "
        "keys LEFT OUTER JOIN accounts ON accounts.number = (SELECT "
        "coalesce(max(CASE WHEN (version.seen_from <= clock_timestamp() + (SELECT "
        "clock.offset_seconds FROM clock) OR version.seen_from > (SELECT "
        "clock_timestamp() + clock.offset_seconds AS anon_1 FROM clock) + 90.0) "
        "THEN version.number END), min(version.number)) AS coalesce_1 FROM "
        "accounts AS version WHERE version.name = keys.space) WHERE keys.key_id = "
        ":key"
    ),
    "key": (
        "SELECT keys.number, keys.key_id, keys.account, keys.organization, "
        "keys.space, keys.name, keys.auth_sha256, keys.scopes, "
        "keys.custody_requested, keys.custody_public_key, keys.created_at, "
        "keys.last_used_at, keys.revoked_at, keys.compromised_at, "
        "keys.granted_at, keys.custody_sha256 FROM keys WHERE keys.key_id = :key"
    ),
    "keys": (
        "SELECT keys.number, keys.key_id, keys.account, keys.organization, "
        "keys.space, keys.name, keys.auth_sha256, keys.scopes, "
        "keys.custody_requested, keys.custody_public_key, keys.created_at, "
        "keys.last_used_at, keys.revoked_at, keys.compromised_at, "
        "keys.granted_at, keys.custody_sha256 FROM keys ORDER BY keys.created_at, "
        "keys.number"
    ),
    "add_key": (
        "INSERT INTO keys (key_id, account, organization, space, name, "
        "auth_sha256, scopes, custody_requested, custody_public_key, created_at, "
        "last_used_at, revoked_at, compromised_at, granted_at, custody_sha256) "
        "VALUES (:key_id, :account, :organization, :space, :name, :auth_sha256, "
        ":scopes, :custody_requested, :custody_public_key, :created_at, "
        ":last_used_at, :revoked_at, :compromised_at, :granted_at, "
        ":custody_sha256) ON CONFLICT (key_id) DO NOTHING RETURNING number"
    ),
    "active_keys": (
        "SELECT count(*) AS count FROM keys WHERE keys.revoked_at IS NULL AND "
        "keys.space = :in_space"
    ),
    "compromised": (
        "SELECT keys.number FROM keys WHERE keys.compromised_at IS NOT NULL AND "
        "(keys.auth_sha256 = :auth OR keys.custody_public_key = :public_key OR "
        "keys.custody_sha256 = :custody) LIMIT 1 OFFSET 0"
    ),
    "mark_used": (
        "UPDATE keys SET last_used_at=(clock_timestamp() + (SELECT "
        "clock.offset_seconds FROM clock)) WHERE keys.key_id = :key AND "
        "(keys.last_used_at IS NULL OR keys.last_used_at <= (clock_timestamp() + "
        "(SELECT clock.offset_seconds FROM clock)) - 60.0 OR keys.last_used_at > "
        "clock_timestamp() + (SELECT clock.offset_seconds FROM clock))"
    ),
    "mark_revoked": (
        "UPDATE keys SET revoked_at=(clock_timestamp() + (SELECT "
        "clock.offset_seconds FROM clock)), granted_at=NULL WHERE keys.key_id = "
        ":key AND keys.revoked_at IS NULL"
    ),
    "mark_granted": (
        "UPDATE keys SET granted_at=(clock_timestamp() + (SELECT "
        "clock.offset_seconds FROM clock)) WHERE keys.key_id = :key AND "
        "keys.granted_at IS NULL"
    ),
    "mark_compromised": (
        "UPDATE keys SET compromised_at=(clock_timestamp() + (SELECT "
        "clock.offset_seconds FROM clock)) WHERE keys.key_id = :key AND "
        "keys.compromised_at IS NULL"
    ),
    "register_custody": "UPDATE keys SET custody_public_key=:public_key WHERE keys.key_id = :key",
    "take": (
        "INSERT INTO rates (key_id, tokens, at) VALUES (:key, (CAST(:burst AS "
        "DOUBLE) - :amount), :now) ON CONFLICT (key_id) DO UPDATE SET tokens = "
        "(CASE WHEN (rates.tokens + CASE WHEN (:now - rates.at > 0.0) THEN (:now "
        "- rates.at) * :per_second ELSE 0.0 END < :burst) THEN rates.tokens + "
        "CASE WHEN (:now - rates.at > 0.0) THEN (:now - rates.at) * :per_second "
        "ELSE 0.0 END ELSE :burst END - :amount), at = CASE WHEN (:now - rates.at "
        "BETWEEN -60.0 AND 0.0) THEN rates.at ELSE :now END WHERE CASE WHEN "
        "(rates.tokens + CASE WHEN (:now - rates.at > 0.0) THEN (:now - rates.at) "
        "* :per_second ELSE 0.0 END < :burst) THEN rates.tokens + CASE WHEN (:now "
        "- rates.at > 0.0) THEN (:now - rates.at) * :per_second ELSE 0.0 END ELSE "
        ":burst END + 5e-07 >= :amount RETURNING tokens"
    ),
    "tokens": (
        "SELECT CASE WHEN (rates.tokens + CASE WHEN (:now - rates.at > 0.0) THEN "
        "(:now - rates.at) * :per_second ELSE 0.0 END < :burst) THEN rates.tokens "
        "+ CASE WHEN (:now - rates.at > 0.0) THEN (:now - rates.at) * :per_second "
        "ELSE 0.0 END ELSE :burst END AS tokens FROM rates WHERE rates.key_id = "
        ":key"
    ),
    "restart_bucket": (
        "UPDATE rates SET at=:now WHERE rates.key_id = :key AND :now - rates.at < "
        "-60.0"
    ),
    "add_share": (
        "INSERT INTO shares (short_code, space, owner, key_id, created_at, "
        "encryption_type, access_token_sha256, passcode_verifier_sha256, title, "
        "description, expired_at, expires, access_counts_left, "
        "passcode_attempts_left, item_key_wrap, custody, timed_view, notify_on, "
        "organization_id, ended_at, ended_by, data) VALUES (:short_code, :space, "
        ":owner, :key_id, :created_at, :encryption_type, :access_token_sha256, "
        ":passcode_verifier_sha256, :title, :description, :expired_at, :expires, "
        ":access_counts_left, :passcode_attempts_left, :item_key_wrap, :custody, "
        ":timed_view, :notify_on, :organization_id, :ended_at, :ended_by, :data) "
        "ON CONFLICT (short_code) DO NOTHING RETURNING number"
    ),
    "share": (
        "SELECT shares.number, shares.short_code, shares.expired_at FROM shares "
        "WHERE shares.short_code = :code AND shares.space = :in_space AND "
        "shares.ended_by IS NOT 'deleted'"
    ),
    "share_of": (
        "SELECT shares.number, shares.short_code FROM shares WHERE "
        "shares.short_code = :code AND shares.space = :in_space"
    ),
    "share_at_link": (
        "SELECT shares.number, shares.short_code, shares.space, shares.owner, "
        "shares.key_id, shares.created_at, shares.encryption_type, "
        "shares.access_token_sha256, shares.passcode_verifier_sha256, "
        "shares.title, shares.description, shares.expired_at, shares.expires, "
        "shares.access_counts_left, shares.passcode_attempts_left, "
        "shares.item_key_wrap, shares.custody, shares.timed_view, "
        "shares.notify_on, shares.organization_id, shares.ended_at, "
        "shares.ended_by, shares.ended_at IS NULL AND shares.expires IS NOT NULL "
        "AND shares.expires BETWEEN -100000000000.0 AND (SELECT clock_timestamp() "
        "+ clock.offset_seconds AS anon_1 FROM clock) AS is_due FROM shares WHERE "
        "shares.short_code = :code"
    ),
    "open_share": (
        "UPDATE shares SET access_counts_left=(shares.access_counts_left - 1), "
        "ended_at=CASE WHEN (shares.access_counts_left = 1) THEN "
        "clock_timestamp() + (SELECT clock.offset_seconds FROM clock) ELSE NULL "
        "END, ended_by=CASE WHEN (shares.access_counts_left = 1) THEN 'views' "
        "ELSE NULL END WHERE shares.number = :share AND shares.ended_at IS NULL "
        "AND (shares.expires IS NULL OR shares.expires > clock_timestamp() + "
        "(SELECT clock.offset_seconds FROM clock)) AND (shares.access_counts_left "
        "IS NULL OR shares.access_counts_left > 0) RETURNING number, short_code, "
        "space, owner, key_id, created_at, encryption_type, access_token_sha256, "
        "passcode_verifier_sha256, title, description, expired_at, expires, "
        "access_counts_left, passcode_attempts_left, item_key_wrap, custody, "
        "timed_view, notify_on, organization_id, ended_at, ended_by, data, "
        "clock_timestamp() + (SELECT clock.offset_seconds FROM clock) AS now"
    ),
    "spend_attempt": (
        "UPDATE shares SET passcode_attempts_left=(shares.passcode_attempts_left "
        "- 1), ended_at=CASE WHEN (shares.passcode_attempts_left = 1) THEN "
        "clock_timestamp() + (SELECT clock.offset_seconds FROM clock) ELSE NULL "
        "END, ended_by=CASE WHEN (shares.passcode_attempts_left = 1) THEN "
        "'attempts' ELSE NULL END WHERE shares.number = :share AND "
        "shares.ended_at IS NULL AND (shares.expires IS NULL OR shares.expires > "
        "clock_timestamp() + (SELECT clock.offset_seconds FROM clock)) AND "
        "shares.passcode_attempts_left > 0 RETURNING number, short_code, space, "
        "owner, key_id, created_at, encryption_type, access_token_sha256, "
        "passcode_verifier_sha256, title, description, expired_at, expires, "
        "access_counts_left, passcode_attempts_left, item_key_wrap, custody, "
        "timed_view, notify_on, organization_id, ended_at, ended_by, data, "
        "clock_timestamp() + (SELECT clock.offset_seconds FROM clock) AS now"
    ),
    "delete_share": (
        "UPDATE shares SET ended_at=(clock_timestamp() + (SELECT "
        "clock.offset_seconds FROM clock)), ended_by='deleted' WHERE "
        "shares.short_code = :code AND shares.space = :in_space AND "
        "shares.ended_at IS NULL AND (shares.expires IS NULL OR shares.expires > "
        "clock_timestamp() + (SELECT clock.offset_seconds FROM clock)) RETURNING "
        "number, owner, space, notify_on, short_code, clock_timestamp() + (SELECT "
        "clock.offset_seconds FROM clock) AS now"
    ),
    "count_view": (
        "INSERT INTO views (space, day, count) VALUES (:in_space, :on, 1) ON "
        "CONFLICT (space, day) DO UPDATE SET count = (views.count + 1)"
    ),
    "views": "SELECT views.day, views.count FROM views WHERE views.space = :in_space",
    "add_access": (
        "INSERT INTO accesses (share, accessed, accessed_at, accessed_ip, "
        "platform, user_agent, failed_passcode, signed_in, space) VALUES (:share, "
        ":accessed, :accessed_at, :accessed_ip, :platform, :user_agent, "
        ":failed_passcode, :signed_in, :space)"
    ),
    "accesses": (
        "SELECT accesses.number, accesses.share, accesses.accessed, "
        "accesses.accessed_at, accesses.accessed_ip, accesses.platform, "
        "accesses.user_agent, accesses.failed_passcode, accesses.signed_in, "
        "accesses.space FROM accesses WHERE accesses.share = :of_share AND "
        "accesses.number < :before AND accesses.accessed BETWEEN :since AND "
        ":until ORDER BY accesses.number DESC LIMIT :most OFFSET 0"
    ),
    "add_request": (
        "INSERT INTO requests (short_code, space, owner, key_id, created_at, "
        "title, public_key, fields, description, expired_at, expires, "
        "max_submission, received, access_counts_left, passcode_sha256, "
        "requires_login, requires_mfa, restricted_domain, ip_whitelist, "
        "organization_id, ended_at, ended_by) VALUES (:short_code, :space, "
        ":owner, :key_id, :created_at, :title, :public_key, :fields, "
        ":description, :expired_at, :expires, :max_submission, :received, "
        ":access_counts_left, :passcode_sha256, :requires_login, :requires_mfa, "
        ":restricted_domain, :ip_whitelist, :organization_id, :ended_at, "
        ":ended_by) ON CONFLICT (short_code) DO NOTHING RETURNING number"
    ),
    "request": (
        "SELECT requests.number, requests.short_code, requests.space, "
        "requests.owner, requests.key_id, requests.created_at, requests.title, "
        "requests.public_key, requests.fields, requests.description, "
        "requests.expired_at, requests.expires, requests.max_submission, "
        "requests.received, requests.access_counts_left, "
        "requests.passcode_sha256, requests.requires_login, "
        "requests.requires_mfa, requests.restricted_domain, "
        "requests.ip_whitelist, requests.organization_id, requests.ended_at, "
        "requests.ended_by, requests.ended_at IS NULL AND requests.expires IS NOT "
        "NULL AND requests.expires BETWEEN -100000000000.0 AND (SELECT "
        "clock_timestamp() + clock.offset_seconds AS anon_1 FROM clock) AS is_due "
        "FROM requests WHERE requests.short_code = :code AND requests.space = "
        ":in_space"
    ),
    "request_at_link": (
        "SELECT requests.number, requests.short_code, requests.space, "
        "requests.owner, requests.key_id, requests.created_at, requests.title, "
        "requests.public_key, requests.fields, requests.description, "
        "requests.expired_at, requests.expires, requests.max_submission, "
        "requests.received, requests.access_counts_left, "
        "requests.passcode_sha256, requests.requires_login, "
        "requests.requires_mfa, requests.restricted_domain, "
        "requests.ip_whitelist, requests.organization_id, requests.ended_at, "
        "requests.ended_by, requests.ended_at IS NULL AND requests.expires IS NOT "
        "NULL AND requests.expires BETWEEN -100000000000.0 AND (SELECT "
        "clock_timestamp() + clock.offset_seconds AS anon_1 FROM clock) AS is_due "
        "FROM requests WHERE requests.short_code = :code"
    ),
    "spend_access": (
        "UPDATE requests SET access_counts_left=(requests.access_counts_left - 1) "
        "WHERE requests.number = :request_number AND requests.ended_at IS NULL "
        "AND (requests.expires IS NULL OR requests.expires > clock_timestamp() + "
        "(SELECT clock.offset_seconds FROM clock)) AND "
        "(requests.access_counts_left IS NULL OR requests.access_counts_left > 0) "
        "RETURNING number, short_code, space, owner, key_id, created_at, title, "
        "public_key, fields, description, expired_at, expires, max_submission, "
        "received, access_counts_left, passcode_sha256, requires_login, "
        "requires_mfa, restricted_domain, ip_whitelist, organization_id, "
        "ended_at, ended_by"
    ),
    "receive": (
        "UPDATE requests SET received=(requests.received + 1) WHERE "
        "requests.number = :request_number AND requests.ended_at IS NULL AND "
        "(requests.expires IS NULL OR requests.expires > clock_timestamp() + "
        "(SELECT clock.offset_seconds FROM clock)) AND (requests.max_submission "
        "IS NULL OR requests.received < requests.max_submission) RETURNING owner, "
        "short_code, clock_timestamp() + (SELECT clock.offset_seconds FROM clock) "
        "AS now"
    ),
    "add_submission": (
        "INSERT INTO submissions (short_code, request, created_at, "
        "encryption_type, data) VALUES (:short_code, :request, :created_at, "
        ":encryption_type, :data) ON CONFLICT (short_code) DO NOTHING RETURNING "
        "number"
    ),
    "stored": (
        "SELECT coalesce(sum(length(submissions.data)), 0) AS size FROM "
        "submissions WHERE submissions.request = :request_number"
    ),
    "submissions": (
        "SELECT submissions.number, submissions.short_code, submissions.request, "
        "submissions.created_at, submissions.encryption_type, submissions.data "
        "FROM submissions WHERE submissions.request = :request_number ORDER BY "
        "submissions.number"
    ),
    "end_request": (
        "UPDATE requests SET ended_at=(clock_timestamp() + (SELECT "
        "clock.offset_seconds FROM clock)), ended_by='deleted' WHERE "
        "requests.short_code = :code AND requests.space = :in_space AND "
        "requests.ended_at IS NULL AND (requests.expires IS NULL OR "
        "requests.expires > clock_timestamp() + (SELECT clock.offset_seconds FROM "
        "clock)) RETURNING number"
    ),
    "delete_request": (
        "DELETE FROM requests WHERE requests.short_code = :code AND "
        "requests.space = :in_space AND (requests.ended_at IS NOT NULL OR "
        "requests.expires <= clock_timestamp() + (SELECT clock.offset_seconds "
        "FROM clock)) RETURNING number, ended_at"
    ),
    "delete_submissions": "DELETE FROM submissions WHERE submissions.request = :request_number",
    "count_new": (
        "INSERT INTO counts (what, space, live, ended) VALUES (:of, :in_space, 1, "
        "0) ON CONFLICT (what, space) DO UPDATE SET live = (counts.live + 1) "
        "RETURNING live"
    ),
    "count_ended": (
        "UPDATE counts SET live=(counts.live - :by), ended=(counts.ended + :by) "
        "WHERE counts.what = :of AND counts.space = :in_space"
    ),
    "count_gone": (
        "UPDATE counts SET live=(counts.live - :live_ones), ended=(counts.ended - "
        ":ended_ones) WHERE counts.what = :of AND counts.space = :in_space"
    ),
    "count_shares": (
        "SELECT counts.live, counts.ended, (SELECT count(*) AS count_1 FROM "
        "shares WHERE shares.space = :in_space AND shares.ended_at IS NULL AND "
        "shares.expires IS NOT NULL AND shares.expires BETWEEN -100000000000.0 "
        "AND (SELECT clock_timestamp() + clock.offset_seconds AS anon_1 FROM "
        "clock)) AS due FROM counts WHERE counts.what = 'shares' AND counts.space "
        "= :in_space"
    ),
    "list_shares": (
        "SELECT shares.short_code, shares.expired_at, shares.ended_at FROM shares "
        "WHERE shares.space = :in_space AND shares.ended_at IS NULL AND "
        "(shares.expires IS NULL OR shares.expires > clock_timestamp() + (SELECT "
        "clock.offset_seconds FROM clock)) ORDER BY shares.number DESC LIMIT "
        ":most OFFSET :skipped"
    ),
    "list_ended_shares": (
        "SELECT shares.short_code, shares.expired_at, shares.ended_at FROM shares "
        "WHERE shares.space = :in_space AND shares.ended_at IS NOT NULL ORDER BY "
        "shares.ended_at DESC, shares.number DESC LIMIT :most OFFSET :skipped"
    ),
    "count_requests": (
        "SELECT counts.live, counts.ended, (SELECT count(*) AS count_1 FROM "
        "requests WHERE requests.space = :in_space AND requests.ended_at IS NULL "
        "AND requests.expires IS NOT NULL AND requests.expires BETWEEN "
        "-100000000000.0 AND (SELECT clock_timestamp() + clock.offset_seconds AS "
        "anon_1 FROM clock)) AS due FROM counts WHERE counts.what = 'requests' "
        "AND counts.space = :in_space"
    ),
    "list_requests": (
        "SELECT requests.short_code, requests.expired_at, requests.ended_at, "
        "requests.public_key FROM requests WHERE requests.space = :in_space AND "
        "requests.ended_at IS NULL AND (requests.expires IS NULL OR "
        "requests.expires > clock_timestamp() + (SELECT clock.offset_seconds FROM "
        "clock)) ORDER BY requests.number DESC LIMIT :most OFFSET :skipped"
    ),
    "list_ended_requests": (
        "SELECT requests.short_code, requests.expired_at, requests.ended_at, "
        "requests.public_key FROM requests WHERE requests.space = :in_space AND "
        "requests.ended_at IS NOT NULL ORDER BY requests.ended_at DESC, "
        "requests.number DESC LIMIT :most OFFSET :skipped"
    ),
    "replay": (
        "SELECT idempotency.body_mac, idempotency.answer FROM idempotency WHERE "
        "idempotency.key_id = :key AND idempotency.name = :under AND "
        "idempotency.created_at > (clock_timestamp() + (SELECT "
        "clock.offset_seconds FROM clock)) - 86400.0"
    ),
    "record": (
        "INSERT INTO idempotency (key_id, name, body_mac, answer, created_at) "
        "VALUES (:key_id, :name, :body_mac, :answer, :created_at) ON CONFLICT "
        "(key_id, name) DO UPDATE SET body_mac = excluded.body_mac, answer = "
        "excluded.answer, created_at = excluded.created_at"
    ),
    "sweep_shares": (
        "UPDATE shares SET ended_at=shares.expires, ended_by='time' WHERE "
        "shares.number IN (SELECT shares.number FROM shares WHERE shares.ended_at "
        "IS NULL AND shares.expires IS NOT NULL AND shares.expires BETWEEN "
        "-100000000000.0 AND (SELECT clock_timestamp() + clock.offset_seconds AS "
        "anon_1 FROM clock) ORDER BY shares.expires LIMIT 1000 OFFSET 0) AND "
        "shares.ended_at IS NULL RETURNING space, owner, short_code, notify_on, "
        "ended_at AS now"
    ),
    "sweep_requests": (
        "UPDATE requests SET ended_at=requests.expires, ended_by='time' WHERE "
        "requests.number IN (SELECT requests.number FROM requests WHERE "
        "requests.ended_at IS NULL AND requests.expires IS NOT NULL AND "
        "requests.expires BETWEEN -100000000000.0 AND (SELECT clock_timestamp() + "
        "clock.offset_seconds AS anon_1 FROM clock) ORDER BY requests.expires "
        "LIMIT 1000 OFFSET 0) AND requests.ended_at IS NULL RETURNING space"
    ),
    "purge_requests": (
        "DELETE FROM requests WHERE requests.number IN (SELECT requests.number "
        "FROM requests WHERE requests.ended_at BETWEEN -100000000000.0 AND "
        "(SELECT clock_timestamp() + clock.offset_seconds AS anon_1 FROM clock) - "
        ":older_than LIMIT 1000 OFFSET 0) RETURNING number, space"
    ),
    "is_due": (
        "SELECT (SELECT min(shares.expires) AS min_1 FROM shares WHERE "
        "shares.ended_at IS NULL AND shares.expires IS NOT NULL) <= (SELECT "
        "clock_timestamp() + clock.offset_seconds AS anon_1 FROM clock) OR "
        "(SELECT min(requests.expires) AS min_2 FROM requests WHERE "
        "requests.ended_at IS NULL AND requests.expires IS NOT NULL) <= (SELECT "
        "clock_timestamp() + clock.offset_seconds AS anon_1 FROM clock) AS is_due"
    ),
    "drop_ciphertext": (
        "UPDATE shares SET title=NULL, description=NULL, item_key_wrap=NULL, "
        "data=NULL WHERE shares.number IN (SELECT shares.number FROM shares WHERE "
        "(shares.ended_at BETWEEN -100000000000.0 AND (SELECT clock_timestamp() + "
        "clock.offset_seconds AS anon_1 FROM clock) - 1800.0 OR shares.ended_at > "
        "(SELECT clock_timestamp() + clock.offset_seconds AS anon_1 FROM clock) + "
        "60.0) AND shares.ended_at IS NOT NULL AND shares.data IS NOT NULL LIMIT "
        "1000 OFFSET 0)"
    ),
    "drop_deliveries": (
        "DELETE FROM deliveries WHERE deliveries.due IS NULL AND "
        "deliveries.number <= (SELECT max(newest.number) AS max_1 FROM deliveries "
        "AS newest) - 2000"
    ),
    "drop_accesses": (
        "DELETE FROM accesses WHERE accesses.number IN (SELECT accesses.number "
        "FROM accounts JOIN accesses ON accesses.space = accounts.name WHERE "
        "accounts.number IN (SELECT max(accounts.number) AS max_1 FROM accounts "
        'GROUP BY accounts.name) AND accounts."plan" = :of_plan AND '
        "accesses.accessed BETWEEN -100000000000.0 AND (SELECT clock_timestamp() "
        "+ clock.offset_seconds AS anon_1 FROM clock) - :older_than LIMIT 1000 "
        "OFFSET 0)"
    ),
    "drop_buckets": (
        "DELETE FROM rates WHERE rates.at <= (SELECT clock_timestamp() + "
        "clock.offset_seconds AS anon_1 FROM clock) - 3600.0"
    ),
    "drop_records": (
        "DELETE FROM idempotency WHERE (idempotency.key_id, idempotency.name) IN "
        "(SELECT idempotency.key_id, idempotency.name FROM idempotency WHERE "
        "idempotency.created_at BETWEEN -100000000000.0 AND (SELECT "
        "clock_timestamp() + clock.offset_seconds AS anon_1 FROM clock) - 90000.0 "
        "LIMIT 1000 OFFSET 0)"
    ),
    "add_webhook": (
        "INSERT INTO webhooks (id, account, url, secret, previous_secret, "
        "created_at, rotated_at) VALUES (:id, :account, :url, :secret, "
        ":previous_secret, :created_at, :rotated_at)"
    ),
    "webhook": (
        "SELECT webhooks.number, webhooks.id, webhooks.account, webhooks.url, "
        "webhooks.secret, webhooks.previous_secret, webhooks.created_at, "
        "webhooks.rotated_at FROM webhooks WHERE webhooks.id = :webhook_id"
    ),
    "webhooks": (
        "SELECT webhooks.number, webhooks.id, webhooks.account, webhooks.url, "
        "webhooks.secret, webhooks.previous_secret, webhooks.created_at, "
        "webhooks.rotated_at FROM webhooks WHERE webhooks.secret != '' ORDER BY "
        "webhooks.number"
    ),
    "webhooks_of": (
        "SELECT webhooks.number, webhooks.id, webhooks.account, webhooks.url, "
        "webhooks.secret, webhooks.previous_secret, webhooks.created_at, "
        "webhooks.rotated_at FROM webhooks WHERE webhooks.account = :of_account "
        "AND webhooks.secret != '' ORDER BY webhooks.number"
    ),
    "mail": (
        "SELECT webhooks.number, webhooks.id, webhooks.account, webhooks.url, "
        "webhooks.secret, webhooks.previous_secret, webhooks.created_at, "
        "webhooks.rotated_at FROM webhooks WHERE webhooks.secret = '' ORDER BY "
        "webhooks.number"
    ),
    "mail_of": (
        "SELECT webhooks.number, webhooks.id, webhooks.account, webhooks.url, "
        "webhooks.secret, webhooks.previous_secret, webhooks.created_at, "
        "webhooks.rotated_at FROM webhooks WHERE webhooks.account = :of_account "
        "AND webhooks.secret = '' ORDER BY webhooks.number"
    ),
    "rotate_webhook": (
        "UPDATE webhooks SET secret=:new_secret, previous_secret=webhooks.secret, "
        "rotated_at=(clock_timestamp() + (SELECT clock.offset_seconds FROM "
        "clock)) WHERE webhooks.id = :webhook_id AND webhooks.secret != '' "
        "RETURNING number, id, account, url, secret, previous_secret, created_at, "
        "rotated_at"
    ),
    "remove_webhook": "DELETE FROM webhooks WHERE webhooks.id = :webhook_id RETURNING number",
    "remove_deliveries": "DELETE FROM deliveries WHERE deliveries.webhook = :webhook_id",
    "queue": (
        "INSERT INTO deliveries (webhook, body, created_at, attempts, due, state) "
        "SELECT :webhook_id AS anon_1, :event AS anon_2, clock_timestamp() + "
        "(SELECT clock.offset_seconds FROM clock) AS anon_3, 0, clock_timestamp() "
        "+ (SELECT clock.offset_seconds FROM clock) AS anon__1, 'waiting' WHERE "
        "NOT (EXISTS (SELECT waiting.number FROM deliveries AS waiting WHERE "
        "waiting.webhook = :webhook_id AND waiting.due IS NOT NULL LIMIT 1 OFFSET "
        "9999))"
    ),
    "lease_delivery": (
        "UPDATE deliveries SET leased_until=(clock_timestamp() + (SELECT "
        "clock.offset_seconds FROM clock) + 30.0) WHERE deliveries.number = "
        "(SELECT waiting.number FROM deliveries AS waiting WHERE waiting.due "
        "BETWEEN -100000000000.0 AND (SELECT clock_timestamp() + "
        "clock.offset_seconds AS anon_1 FROM clock) AND NOT (EXISTS (SELECT "
        "sent.number FROM deliveries AS sent WHERE sent.webhook = waiting.webhook "
        "AND sent.leased_until IS NOT NULL AND sent.leased_until > "
        "clock_timestamp() + (SELECT clock.offset_seconds FROM clock) AND "
        "sent.leased_until <= (SELECT clock_timestamp() + clock.offset_seconds AS "
        "anon_1 FROM clock) + 90.0)) ORDER BY waiting.due, waiting.number LIMIT 1 "
        "OFFSET 0) RETURNING number, webhook, body, created_at, attempts, due, "
        "leased_until, state, answered"
    ),
    "next_delivery": (
        "SELECT min(deliveries.due) AS due, clock_timestamp() + (SELECT "
        "clock.offset_seconds FROM clock) AS now FROM deliveries WHERE "
        "deliveries.due IS NOT NULL AND (deliveries.leased_until IS NULL OR "
        "deliveries.leased_until <= clock_timestamp() + (SELECT "
        "clock.offset_seconds FROM clock) OR deliveries.leased_until > (SELECT "
        "clock_timestamp() + clock.offset_seconds AS anon_1 FROM clock) + 90.0)"
    ),
    "release_delivery": (
        "UPDATE deliveries SET leased_until=NULL WHERE deliveries.number = "
        ":delivery"
    ),
    "settle_delivery": (
        "UPDATE deliveries SET attempts=(deliveries.attempts + 1), due=:next, "
        "leased_until=NULL, state=:becomes, answered=:said WHERE "
        "deliveries.number = :delivery"
    ),
    "deliveries": (
        "SELECT deliveries.number, deliveries.webhook, deliveries.body, "
        "deliveries.created_at, deliveries.attempts, deliveries.due, "
        "deliveries.leased_until, deliveries.state, deliveries.answered FROM "
        "deliveries ORDER BY deliveries.number"
    ),
}
