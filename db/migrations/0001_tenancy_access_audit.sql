-- Who belongs to what, how they sign in, and what was done.
--
-- Rules of every table here, so that one file serves SQLite and PostgreSQL: times are BIGINT
-- microseconds UTC in columns named *_at or *_until; text that lists order by is COLLATE "C" (identifiers
-- are compared for equality alone, and go without: SQLite calls back into Go for that collation);
-- a *_folded column is written by Go, since the engines fold differently; JSON is TEXT and never
-- queried inside; no engine's own functions.

-- +goose Up
CREATE TABLE settings (
    name  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value BYTEA NOT NULL
);

CREATE TABLE leases (
    name       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    holder     TEXT NOT NULL,
    held_until BIGINT NOT NULL
);

CREATE TABLE clients (
    id          TEXT NOT NULL PRIMARY KEY,
    name        TEXT COLLATE "C" NOT NULL CHECK (name <> ''),
    name_folded TEXT COLLATE "C" NOT NULL UNIQUE,
    created_at  BIGINT NOT NULL
);

CREATE TABLE environments (
    id          TEXT NOT NULL PRIMARY KEY,
    client_id   TEXT NOT NULL REFERENCES clients (id) ON DELETE RESTRICT,
    name        TEXT COLLATE "C" NOT NULL CHECK (name <> ''),
    name_folded TEXT COLLATE "C" NOT NULL,
    created_at  BIGINT NOT NULL,
    UNIQUE (client_id, name_folded),
    -- What lives in an environment refers to this pair, so that no row can name another client.
    UNIQUE (client_id, id)
);

CREATE TABLE users (
    id            TEXT NOT NULL PRIMARY KEY,
    email         TEXT COLLATE "C" NOT NULL CHECK (email <> ''),
    email_folded  TEXT COLLATE "C" NOT NULL UNIQUE,
    name          TEXT COLLATE "C" NOT NULL,
    password_hash TEXT NOT NULL,
    active        BOOLEAN NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL
);

CREATE TABLE roles (
    id          TEXT NOT NULL PRIMARY KEY,
    name        TEXT COLLATE "C" NOT NULL CHECK (name <> ''),
    name_folded TEXT COLLATE "C" NOT NULL UNIQUE,
    built_in    BOOLEAN NOT NULL,
    created_at  BIGINT NOT NULL
);

CREATE TABLE role_permissions (
    role_id    TEXT NOT NULL REFERENCES roles (id) ON DELETE CASCADE,
    permission TEXT NOT NULL,
    position   BIGINT NOT NULL, -- keeps the order in which they were given
    PRIMARY KEY (role_id, permission)
);

-- A null client is the whole console, a null environment all of the client's.
CREATE TABLE role_assignments (
    id             TEXT NOT NULL PRIMARY KEY,
    user_id        TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    role_id        TEXT NOT NULL REFERENCES roles (id) ON DELETE RESTRICT,
    client_id      TEXT REFERENCES clients (id) ON DELETE CASCADE,
    environment_id TEXT,
    created_at     BIGINT NOT NULL,
    FOREIGN KEY (client_id, environment_id) REFERENCES environments (client_id, id) ON DELETE CASCADE,
    CHECK (environment_id IS NULL OR client_id IS NOT NULL)
);
CREATE UNIQUE INDEX role_assignments_once
    ON role_assignments (user_id, role_id, COALESCE(client_id, ''), COALESCE(environment_id, ''));
CREATE INDEX role_assignments_role ON role_assignments (role_id);

-- token_hash is a hash; the plain value lives in the cookie alone.
CREATE TABLE sessions (
    token_hash TEXT NOT NULL PRIMARY KEY,
    user_id    TEXT REFERENCES users (id) ON DELETE CASCADE, -- null before signing in
    data       BYTEA NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);

-- Failed sign-ins, for the rate limit that all replicas share.
CREATE TABLE sign_in_attempts (
    attempt_key TEXT NOT NULL,
    failed_at   BIGINT NOT NULL
);
CREATE INDEX sign_in_attempts_key ON sign_in_attempts (attempt_key, failed_at);

CREATE TABLE api_tokens (
    id           TEXT NOT NULL PRIMARY KEY,
    user_id      TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name         TEXT COLLATE "C" NOT NULL,
    prefix       TEXT NOT NULL,
    hash         BYTEA NOT NULL UNIQUE,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT, -- null: no end
    last_used_at BIGINT,
    revoked_at   BIGINT
);
CREATE INDEX api_tokens_user ON api_tokens (user_id, created_at);

-- No foreign keys: an event outlives what it tells of.
CREATE TABLE audit_events (
    id             TEXT NOT NULL PRIMARY KEY,
    happened_at    BIGINT NOT NULL,
    actor_kind     TEXT NOT NULL CHECK (actor_kind IN ('user', 'agent', 'system')),
    actor_id       TEXT NOT NULL,
    actor_name     TEXT NOT NULL,
    action         TEXT NOT NULL CHECK (action <> ''),
    resource_type  TEXT NOT NULL,
    resource_id    TEXT NOT NULL,
    resource_name  TEXT NOT NULL,
    client_id      TEXT NOT NULL,
    environment_id TEXT NOT NULL,
    remote_addr    TEXT NOT NULL,
    detail         TEXT NOT NULL -- JSON object of strings
);
CREATE INDEX audit_events_time ON audit_events (happened_at, id);
CREATE INDEX audit_events_client ON audit_events (client_id, happened_at, id);
CREATE INDEX audit_events_resource ON audit_events (resource_type, resource_id, happened_at);
