-- Why an agent is kept out, for whoever looks at it.

-- +goose Up
ALTER TABLE agents ADD COLUMN suspended_why TEXT NOT NULL DEFAULT ''; -- of the last suspension
-- A person removed its cluster. What it still sends is not taken, until it enrolls anew.
ALTER TABLE agents ADD COLUMN cluster_removed_at BIGINT;
CREATE INDEX install_tokens_time ON install_tokens (created_at, id);
