"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "accesses",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("share", sa.BigInteger(), nullable=False),
        sa.Column("accessed", sa.Double(), nullable=False),
        sa.Column("accessed_at", sa.Text(), nullable=False),
        sa.Column("accessed_ip", sa.Text(), nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("user_agent", sa.Text(), nullable=True),
        sa.Column("failed_passcode", sa.BigInteger(), nullable=False),
        sa.Column("signed_in", sa.BigInteger(), nullable=False),
        sa.Column("space", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sqlite_autoincrement=True,
    )
    op.create_index("accesses_of", "accesses", ["share", "number"], unique=False)
    op.create_index("accesses_old", "accesses", ["space", "accessed"], unique=False)
    op.create_table(
        "accounts",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("seen_from", sa.Double(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("numbers", sa.Text(), nullable=False),
        sa.Column("view_protection", sa.BigInteger(), nullable=False),
        sa.Column("zero_knowledge_enrolled", sa.BigInteger(), nullable=False),
        sa.Column("zero_knowledge_feature", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sqlite_autoincrement=True,
    )
    op.create_index("accounts_by_name", "accounts", ["name", "number"], unique=False)
    op.create_table(
        "clock",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("offset_seconds", sa.Double(), nullable=False),
        sa.CheckConstraint("id = 1"),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "counts",
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("space", sa.Text(), nullable=False),
        sa.Column("live", sa.BigInteger(), nullable=False),
        sa.Column("ended", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("what", "space"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "deliveries",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("webhook", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("due", sa.Double(), nullable=True),
        sa.Column("leased_until", sa.Double(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("answered", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("number"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "deliveries_due",
        "deliveries",
        ["due", "number"],
        unique=False,
        sqlite_where=sa.text("due IS NOT NULL"),
        postgresql_where=sa.text("due IS NOT NULL"),
    )
    op.create_index(
        "deliveries_leased",
        "deliveries",
        ["webhook"],
        unique=False,
        sqlite_where=sa.text("leased_until IS NOT NULL"),
        postgresql_where=sa.text("leased_until IS NOT NULL"),
    )
    op.create_index(
        "deliveries_waiting",
        "deliveries",
        ["webhook"],
        unique=False,
        sqlite_where=sa.text("due IS NOT NULL"),
        postgresql_where=sa.text("due IS NOT NULL"),
    )
    op.create_table(
        "idempotency",
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("body_mac", sa.Text(), nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("key_id", "name"),
        sqlite_autoincrement=True,
    )
    op.create_index("idempotency_old", "idempotency", ["created_at"], unique=False)
    op.create_table(
        "keys",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("organization", sa.Text(), nullable=True),
        sa.Column("space", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("auth_sha256", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("custody_requested", sa.BigInteger(), nullable=False),
        sa.Column("custody_public_key", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("last_used_at", sa.Double(), nullable=True),
        sa.Column("revoked_at", sa.Double(), nullable=True),
        sa.Column("compromised_at", sa.Double(), nullable=True),
        sa.Column("granted_at", sa.Double(), nullable=True),
        sa.Column("custody_sha256", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("key_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("keys_of", "keys", ["space"], unique=False)
    op.create_table(
        "rates",
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("tokens", sa.Double(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("key_id"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "requests",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("short_code", sa.Text(), nullable=False),
        sa.Column("space", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("fields", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("expired_at", sa.Text(), nullable=False),
        sa.Column("expires", sa.Double(), nullable=False),
        sa.Column("max_submission", sa.BigInteger(), nullable=True),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("access_counts_left", sa.BigInteger(), nullable=True),
        sa.Column("passcode_sha256", sa.Text(), nullable=True),
        sa.Column("requires_login", sa.BigInteger(), nullable=True),
        sa.Column("requires_mfa", sa.BigInteger(), nullable=True),
        sa.Column("restricted_domain", sa.Text(), nullable=True),
        sa.Column("ip_whitelist", sa.Text(), nullable=True),
        sa.Column("organization_id", sa.Text(), nullable=True),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.Column("ended_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("short_code"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "requests_due",
        "requests",
        ["space", "expires"],
        unique=False,
        sqlite_where=sa.text("ended_at IS NULL AND expires IS NOT NULL"),
        postgresql_where=sa.text("ended_at IS NULL AND expires IS NOT NULL"),
    )
    op.create_index(
        "requests_ended",
        "requests",
        ["space", "ended_at", "number"],
        unique=False,
        sqlite_where=sa.text("ended_at IS NOT NULL"),
        postgresql_where=sa.text("ended_at IS NOT NULL"),
    )
    op.create_index(
        "requests_live",
        "requests",
        ["space", "number"],
        unique=False,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_index(
        "requests_next",
        "requests",
        ["expires"],
        unique=False,
        sqlite_where=sa.text("ended_at IS NULL AND expires IS NOT NULL"),
        postgresql_where=sa.text("ended_at IS NULL AND expires IS NOT NULL"),
    )
    op.create_table(
        "service",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("tag", sa.Text(), nullable=False),
        sa.CheckConstraint("id = 1"),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "shares",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("short_code", sa.Text(), nullable=False),
        sa.Column("space", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("encryption_type", sa.Text(), nullable=False),
        sa.Column("access_token_sha256", sa.Text(), nullable=False),
        sa.Column("passcode_verifier_sha256", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("expired_at", sa.Text(), nullable=True),
        sa.Column("expires", sa.Double(), nullable=True),
        sa.Column("access_counts_left", sa.BigInteger(), nullable=True),
        sa.Column("passcode_attempts_left", sa.BigInteger(), nullable=False),
        sa.Column("item_key_wrap", sa.Text(), nullable=True),
        sa.Column("custody", sa.Text(), nullable=False),
        sa.Column("timed_view", sa.BigInteger(), nullable=True),
        sa.Column("notify_on", sa.Text(), nullable=True),
        sa.Column("organization_id", sa.Text(), nullable=True),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.Column("ended_by", sa.Text(), nullable=True),
        sa.Column("data", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("short_code"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "shares_due",
        "shares",
        ["space", "expires"],
        unique=False,
        sqlite_where=sa.text("ended_at IS NULL AND expires IS NOT NULL"),
        postgresql_where=sa.text("ended_at IS NULL AND expires IS NOT NULL"),
    )
    op.create_index(
        "shares_ended",
        "shares",
        ["space", "ended_at", "number"],
        unique=False,
        sqlite_where=sa.text("ended_at IS NOT NULL"),
        postgresql_where=sa.text("ended_at IS NOT NULL"),
    )
    op.create_index(
        "shares_live",
        "shares",
        ["space", "number"],
        unique=False,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_index(
        "shares_next",
        "shares",
        ["expires"],
        unique=False,
        sqlite_where=sa.text("ended_at IS NULL AND expires IS NOT NULL"),
        postgresql_where=sa.text("ended_at IS NULL AND expires IS NOT NULL"),
    )
    op.create_index(
        "shares_sealed",
        "shares",
        ["ended_at"],
        unique=False,
        sqlite_where=sa.text("ended_at IS NOT NULL AND data IS NOT NULL"),
        postgresql_where=sa.text("ended_at IS NOT NULL AND data IS NOT NULL"),
    )
    op.create_table(
        "submissions",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("short_code", sa.Text(), nullable=False),
        sa.Column("request", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("encryption_type", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("short_code"),
        sqlite_autoincrement=True,
    )
    op.create_index("submissions_of", "submissions", ["request", "number"], unique=False)
    op.create_table(
        "views",
        sa.Column("space", sa.Text(), nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("space", "day"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "webhooks",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("previous_secret", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("rotated_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("webhooks_of", "webhooks", ["account", "number"], unique=False)
    op.execute("INSERT INTO clock (id, offset_seconds) VALUES (1, 0)")
