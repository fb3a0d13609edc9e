-- How agents come in and live, and the attempts that bring clusters in.

-- +goose Up

-- An attempt to bring in a cluster; never deleted (A-108).
CREATE TABLE onboardings (
    id                TEXT NOT NULL PRIMARY KEY,
    client_id         TEXT NOT NULL,
    environment_id    TEXT NOT NULL,
    slug              TEXT COLLATE "C" NOT NULL CHECK (slug <> ''),
    display_name      TEXT NOT NULL,
    created_at        BIGINT NOT NULL,
    created_by        TEXT NOT NULL, -- no foreign key: outlives the user
    abandoned_at      BIGINT,
    archived_at       BIGINT,
    inventory_done_at BIGINT,
    access_done_at    BIGINT,
    last_status       TEXT NOT NULL, -- JSON; empty: none yet
    last_checked_at   BIGINT,
    FOREIGN KEY (client_id, environment_id) REFERENCES environments (client_id, id) ON DELETE RESTRICT
);
-- The slug is free again once its cluster was removed (X-30).
CREATE UNIQUE INDEX onboardings_slug ON onboardings (environment_id, slug) WHERE archived_at IS NULL;
CREATE INDEX onboardings_client ON onboardings (client_id, created_at);

CREATE TABLE install_tokens (
    id             TEXT NOT NULL PRIMARY KEY,
    client_id      TEXT NOT NULL,
    environment_id TEXT NOT NULL,
    onboarding_id  TEXT REFERENCES onboardings (id) ON DELETE RESTRICT,
    name           TEXT NOT NULL,
    prefix         TEXT NOT NULL,
    hash           BYTEA NOT NULL UNIQUE,
    agent_type     TEXT NOT NULL CHECK (agent_type IN ('', 'collector', 'k8s-node-monitor', 'host')),
    max_uses       BIGINT NOT NULL CHECK (max_uses >= 0), -- 0: unlimited
    uses           BIGINT NOT NULL CHECK (uses >= 0),
    created_at     BIGINT NOT NULL,
    created_by     TEXT NOT NULL, -- no foreign key: outlives the user
    expires_at     BIGINT NOT NULL,
    revoked_at     BIGINT,
    is_first       BOOLEAN NOT NULL,
    succeeded_at   BIGINT,
    -- The last refusal that was measured on this token (X-52).
    refused_at           BIGINT,
    refused_code         TEXT NOT NULL,
    refused_agent_name   TEXT NOT NULL,
    refused_agent_type   TEXT NOT NULL,
    refused_cluster_slug TEXT NOT NULL,
    refused_version      TEXT NOT NULL,
    refused_remote_addr  TEXT NOT NULL,
    FOREIGN KEY (client_id, environment_id) REFERENCES environments (client_id, id) ON DELETE RESTRICT,
    CHECK (max_uses = 0 OR uses <= max_uses)
);
CREATE INDEX install_tokens_client ON install_tokens (client_id, created_at);
CREATE INDEX install_tokens_onboarding ON install_tokens (onboarding_id);

-- The last self-check that one agent posted under a token; evidence only (X-24).
CREATE TABLE findings (
    token_id     TEXT NOT NULL REFERENCES install_tokens (id) ON DELETE CASCADE,
    agent_name   TEXT COLLATE "C" NOT NULL,
    cluster_slug TEXT NOT NULL,
    version      TEXT NOT NULL,
    received_at  BIGINT NOT NULL,
    items        TEXT NOT NULL, -- JSON
    PRIMARY KEY (token_id, agent_name)
);

CREATE TABLE agents (
    id                    TEXT NOT NULL PRIMARY KEY,
    client_id             TEXT NOT NULL,
    environment_id        TEXT NOT NULL,
    agent_type            TEXT COLLATE "C" NOT NULL CHECK (agent_type IN ('collector', 'k8s-node-monitor', 'host')),
    cluster_slug          TEXT COLLATE "C" NOT NULL, -- empty for hosts
    name                  TEXT COLLATE "C" NOT NULL CHECK (name <> ''),
    public_key            TEXT NOT NULL, -- empty: released
    enrolled_by           TEXT REFERENCES install_tokens (id) ON DELETE RESTRICT,
    enrolled_at           BIGINT NOT NULL,
    version               TEXT NOT NULL,
    capability            BIGINT NOT NULL,
    template              BIGINT NOT NULL,
    credential_issued_at  BIGINT,
    credential_expires_at BIGINT,
    revoked_at            BIGINT,
    released_at           BIGINT,
    suspended_at          BIGINT, -- the last time
    heartbeat_at          BIGINT,
    presence_at           BIGINT,
    role                  TEXT NOT NULL,
    reported_sync         TEXT NOT NULL, -- JSON; empty: none yet
    reported_sync_at      BIGINT,        -- when the message that carried it was received
    published_slug        TEXT NOT NULL,
    published_slug_at     BIGINT,
    sync_interval_seconds BIGINT NOT NULL,
    FOREIGN KEY (client_id, environment_id) REFERENCES environments (client_id, id) ON DELETE RESTRICT,
    -- X-19: equal names are common, one cluster apart.
    UNIQUE (environment_id, agent_type, cluster_slug, name)
);
CREATE UNIQUE INDEX agents_key ON agents (public_key) WHERE public_key <> '';
CREATE INDEX agents_name ON agents (name, cluster_slug, id);
CREATE INDEX agents_token ON agents (enrolled_by, agent_type);

-- Keys whose credentials must no longer be honoured, although the agent may be gone.
CREATE TABLE revoked_keys (
    public_key TEXT NOT NULL PRIMARY KEY,
    agent_id   TEXT NOT NULL,
    revoked_at BIGINT NOT NULL
);
CREATE INDEX revoked_keys_time ON revoked_keys (revoked_at);
