package store

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/tenancy"
)

// noon is when every test's story begins.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

func after(d time.Duration) time.Time { return noon.Add(d) }

// write runs one transaction and ends the test where it fails.
func write(t testing.TB, db *DB, f func(*tx) error) {
	t.Helper()
	if err := db.inTx(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// house makes the clients acme and zeta with the environments prod and test each, named like
// "acme-prod", and the user ann.
func house(t testing.TB, db *DB) {
	t.Helper()
	write(t, db, func(x *tx) error {
		ctx := t.Context()
		for _, c := range []string{"acme", "zeta"} {
			if err := x.InsertClient(ctx, tenancy.Client{ID: c, Name: "Client " + c, CreatedAt: noon}); err != nil {
				return err
			}
			for _, e := range []string{"prod", "test"} {
				if err := x.InsertEnvironment(ctx, tenancy.Environment{ID: c + "-" + e, ClientID: c, Name: e, CreatedAt: noon}); err != nil {
					return err
				}
			}
		}
		return x.InsertUser(ctx, user("ann"))
	})
}

func user(id string) tenancy.User {
	return tenancy.User{
		ID: id, Kind: tenancy.KindPerson, Email: id + "@Example.org", Name: "User " + id, PasswordHash: "hash of " + id, Active: true, CreatedAt: noon, UpdatedAt: noon,
	}
}

func hashOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

func token(id string) enrollment.Token {
	return enrollment.Token{
		ID: id, ClientID: "acme", EnvironmentID: "acme-prod", Name: "token " + id, Prefix: "pit_" + id, MaxUses: 25,
		CreatedAt: noon, CreatedBy: "ann", ExpiresAt: after(24 * time.Hour),
	}
}

func putToken(t testing.TB, db *DB, token enrollment.Token) {
	t.Helper()
	write(t, db, func(x *tx) error { return x.InsertToken(t.Context(), token, hashOf(token.ID)) })
}

func collector(id, slug, tokenID string) fleet.Agent {
	return fleet.Agent{
		ID: id, ClientID: "acme", EnvironmentID: "acme-prod", Type: fleet.TypeCollector, ClusterSlug: slug, Name: "name-" + id,
		PublicKey: "U" + id, EnrolledBy: tokenID, EnrolledAt: noon, Version: "1.0.0", Capability: 1, Template: 1,
		CredentialIssuedAt: noon, CredentialExpiresAt: after(7 * 24 * time.Hour),
	}
}

func putAgent(t testing.TB, db *DB, a fleet.Agent) {
	t.Helper()
	write(t, db, func(x *tx) error { return x.InsertAgent(t.Context(), a) })
}

func attempt(id, slug string) onboarding.Attempt {
	return onboarding.Attempt{
		ID: id, ClientID: "acme", EnvironmentID: "acme-prod", Slug: slug, DisplayName: "Cluster " + slug, CreatedAt: noon, CreatedBy: "ann",
	}
}

func putAttempt(t testing.TB, db *DB, a onboarding.Attempt) {
	t.Helper()
	write(t, db, func(x *tx) error { return x.InsertAttempt(t.Context(), a) })
}

func cluster(id, slug string) inventory.Cluster {
	return inventory.Cluster{
		ID: id, ClientID: "acme", EnvironmentID: "acme-prod", Slug: slug, Name: "Cluster " + slug, UID: "uid-" + id,
		AgentID: "agent", Epoch: 1, Sync: 1, FirstSyncAt: noon, LastSyncAt: noon, CollectedAt: noon, Version: "v1.36.3",
	}
}

func putCluster(t testing.TB, db *DB, c inventory.Cluster) {
	t.Helper()
	write(t, db, func(x *tx) error { return x.InsertCluster(t.Context(), c) })
}

// pod is an object of about 600 bytes, as real ones are.
func pod(namespace, name string, restarts int64) inventory.Object {
	body, err := json.Marshal(map[string]any{
		"name": name, "namespace": namespace, "restarts": restarts, "padding": fmt.Sprintf("%0500d", len(name)),
	})
	if err != nil {
		panic(err)
	}
	o := inventory.Object{
		Key: inventory.Key{Section: inventory.SectionPods, Kind: "Pod", Namespace: namespace, Name: name},
		UID: "uid-" + name, State: "Running", Node: "node-1", Owner: "ReplicaSet/" + name, Restarts: restarts, Ready: 1, Desired: 1,
		CPUMillis: 100, MemoryBytes: 1 << 30, At: noon, Body: body,
	}
	sum := sha256.Sum256(body)
	copy(o.Hash[:], sum[:])
	return o
}

func pods(n int) []inventory.Object {
	all := make([]inventory.Object, n)
	for i := range all {
		all[i] = pod(fmt.Sprintf("ns-%02d", i%20), fmt.Sprintf("pod-%05d", i), int64(i%7))
	}
	return all
}

func apply(t testing.TB, db *DB, change inventory.Change) {
	t.Helper()
	write(t, db, func(x *tx) error { return x.ApplyObjects(t.Context(), change) })
}
