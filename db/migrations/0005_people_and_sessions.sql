-- People are searched by name, programs get accounts of their own, and everybody sees where they are signed in.

-- +goose Up
ALTER TABLE users ADD COLUMN name_folded TEXT COLLATE "C" NOT NULL DEFAULT '';
UPDATE users SET name_folded = LOWER(name); -- of ASCII; Go folds all of it when it writes the row next
ALTER TABLE users ADD COLUMN kind TEXT NOT NULL DEFAULT 'person' CHECK (kind IN ('person', 'service_account'));

-- Sessions of before have no name to be ended by. They end, and whoever had one signs in again.
DROP TABLE sessions;
CREATE TABLE sessions (
    id          TEXT NOT NULL UNIQUE, -- for pages; says nothing about the token
    token_hash  TEXT NOT NULL PRIMARY KEY,
    user_id     TEXT REFERENCES users (id) ON DELETE CASCADE, -- null before signing in
    data        BYTEA NOT NULL,
    created_at  BIGINT NOT NULL,
    seen_at     BIGINT NOT NULL, -- at most some minutes behind
    expires_at  BIGINT NOT NULL,
    remote_addr TEXT NOT NULL,
    user_agent  TEXT NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);
