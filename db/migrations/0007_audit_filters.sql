-- What the audit log is filtered by, newest first, beside client and time.

-- +goose Up
DROP INDEX audit_events_resource;
CREATE INDEX audit_events_resource ON audit_events (resource_type, resource_id, happened_at, id);
CREATE INDEX audit_events_environment ON audit_events (environment_id, happened_at, id);
CREATE INDEX audit_events_action ON audit_events (action, happened_at, id);
CREATE INDEX audit_events_actor ON audit_events (actor_id, happened_at, id);
CREATE INDEX audit_events_actor_name ON audit_events (lower(actor_name), happened_at, id);
