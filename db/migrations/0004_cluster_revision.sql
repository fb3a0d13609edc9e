-- What is stored of a cluster is written by several transactions, between which another replica may write.

-- +goose Up
ALTER TABLE clusters ADD COLUMN revision BIGINT NOT NULL DEFAULT 0; -- grows with each that writes its objects or its fingerprint
