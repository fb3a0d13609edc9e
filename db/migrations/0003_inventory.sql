-- The picture of a cluster.

-- +goose Up
CREATE TABLE clusters (
    id              TEXT NOT NULL PRIMARY KEY,
    client_id       TEXT NOT NULL,
    environment_id  TEXT NOT NULL,
    slug            TEXT COLLATE "C" NOT NULL CHECK (slug <> ''),
    name            TEXT COLLATE "C" NOT NULL,
    search          TEXT NOT NULL,             -- name and slug, folded
    uid             TEXT NOT NULL, -- the fingerprint (X-31)
    agent_id        TEXT NOT NULL, -- no foreign key: the row outlives its publisher
    epoch           BIGINT NOT NULL,
    sync_number     BIGINT NOT NULL,
    partly_applied  BOOLEAN NOT NULL, -- that sync was too large for one transaction and is not stored whole yet
    first_sync_at   BIGINT,
    last_sync_at    BIGINT,
    collected_at    BIGINT,
    version         TEXT NOT NULL,
    version_order   TEXT COLLATE "C" NOT NULL, -- the version with its numbers padded
    platform        TEXT NOT NULL,
    provider        TEXT NOT NULL,
    kinds           TEXT NOT NULL, -- JSON
    node_count      BIGINT NOT NULL,
    namespace_count BIGINT NOT NULL,
    workload_count  BIGINT NOT NULL,
    pod_count       BIGINT NOT NULL,
    service_count   BIGINT NOT NULL,
    event_count     BIGINT NOT NULL,
    dropped         BIGINT NOT NULL,
    dropped_at      BIGINT,
    dropped_reason  TEXT NOT NULL,
    FOREIGN KEY (client_id, environment_id) REFERENCES environments (client_id, id) ON DELETE RESTRICT,
    UNIQUE (environment_id, slug)
);
CREATE INDEX clusters_uid ON clusters (client_id, uid);

-- Another fingerprint that reports under a used slug; nothing else of it is stored (X-31).
CREATE TABLE cluster_conflicts (
    cluster_id    TEXT NOT NULL PRIMARY KEY REFERENCES clusters (id) ON DELETE CASCADE,
    uid           TEXT NOT NULL,
    agent_id      TEXT NOT NULL,
    first_seen_at BIGINT NOT NULL,
    seen_at       BIGINT NOT NULL
);

-- The counter that orders inventories (X-42). It starts before the cluster's row and outlives it.
CREATE TABLE cluster_epochs (
    environment_id TEXT NOT NULL REFERENCES environments (id) ON DELETE CASCADE,
    cluster_slug   TEXT COLLATE "C" NOT NULL,
    epoch          BIGINT NOT NULL,
    PRIMARY KEY (environment_id, cluster_slug)
);

-- The columns that lists sort and filter by, and the whole object as JSON. The key's order serves the
-- default sort of every list.
CREATE TABLE inventory_objects (
    cluster_id      TEXT NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    section         TEXT NOT NULL,
    namespace       TEXT COLLATE "C" NOT NULL,
    name            TEXT COLLATE "C" NOT NULL,
    kind            TEXT COLLATE "C" NOT NULL,
    uid             TEXT NOT NULL,
    search          TEXT NOT NULL, -- namespace/name, folded
    state           TEXT COLLATE "C" NOT NULL,
    node            TEXT COLLATE "C" NOT NULL,
    owner           TEXT COLLATE "C" NOT NULL,
    restarts        BIGINT NOT NULL,
    ready           BIGINT NOT NULL,
    desired         BIGINT NOT NULL,
    cpu_millis      BIGINT NOT NULL,
    memory_bytes    BIGINT NOT NULL,
    occurrences     BIGINT NOT NULL,
    occurred_at     BIGINT,
    unseen_since_at BIGINT,
    hash            BYTEA NOT NULL,
    body            BYTEA NOT NULL, -- JSON of the wire type
    PRIMARY KEY (cluster_id, section, name, namespace, kind)
);
CREATE INDEX inventory_objects_namespace ON inventory_objects (cluster_id, section, namespace);
CREATE INDEX inventory_objects_state ON inventory_objects (cluster_id, section, state);
CREATE INDEX inventory_objects_time ON inventory_objects (cluster_id, section, occurred_at);
