package tenancy_test

import (
	"slices"
	"testing"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/tenancy"
)

func TestWhatKeepsAPlaceFromBeingDeleted(t *testing.T) {
	for _, c := range []struct {
		contents     tenancy.Contents
		blocks, cure string
	}{
		{tenancy.Contents{PastAttempts: 3, PastTokens: 4, Assignments: 2}, "", ""},
		{tenancy.Contents{Clusters: 1}, "1 cluster", "Remove the clusters first."},
		{
			tenancy.Contents{Clusters: 2, Agents: 1, Attempts: 1, Tokens: 3},
			"2 clusters, 1 agent, 1 unfinished attempt and 3 live install tokens",
			"Remove the clusters, delete the agents, abandon the attempts and revoke the install tokens first.",
		},
		{tenancy.Contents{Environments: []string{"prod"}}, "1 environment (prod)", "Delete the environments first."},
		{
			tenancy.Contents{Environments: []string{"a", "b", "c", "d", "e", "f", "g"}},
			"7 environments (a, b, c, d, e and 2 more)",
			"Delete the environments first.",
		},
	} {
		if got := c.contents.Blocks(); got != c.blocks {
			t.Errorf("blocks: %q, want %q", got, c.blocks)
		}
		if got := c.contents.Cure(); got != c.cure {
			t.Errorf("cure: %q, want %q", got, c.cure)
		}
	}
}

func TestDeletingPlaces(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	acme, err := h.CreateClient(ctx, h.root, "acme")
	must(t, err)
	prod, err := h.CreateEnvironment(ctx, h.root, acme.ID, "prod")
	must(t, err)
	owner := h.person(t, "owner", access.Scope{ClientID: acme.ID}, access.ClientsRead, access.ClientsWrite)
	inside := h.person(t, "inside", access.Scope{ClientID: acme.ID, EnvironmentID: prod.ID}, access.ClientsRead, access.ClientsWrite)

	// Whoever may make it may delete it.
	want(t, h.DeleteEnvironment(ctx, inside, prod.ID), "permission_missing")
	want(t, h.DeleteClient(ctx, owner, acme.ID), "permission_missing")
	_, _, err = h.ClientContents(ctx, owner, acme.ID)
	want(t, err, "permission_missing")
	_, _, err = h.EnvironmentContents(ctx, inside, prod.ID)
	want(t, err, "permission_missing")
	want(t, h.DeleteClient(ctx, h.root, acme.ID), "in_use")
	want(t, h.DeleteClient(ctx, h.root, "cli_none"), "not_found")
	want(t, h.DeleteEnvironment(ctx, h.root, "env_none"), "not_found")

	before := len(h.audit.actions)
	must(t, h.DeleteEnvironment(ctx, owner, prod.ID))
	if got := h.audit.actions[before:]; !slices.Equal(got, []string{"role_unassigned", "environment_deleted"}) {
		t.Errorf("audited: %v", got)
	}
	_, held, err := h.User(ctx, h.root, inside.UserID)
	if must(t, err); len(held) != 0 {
		t.Errorf("still held: %v", held)
	}
	before = len(h.audit.actions)
	must(t, h.DeleteClient(ctx, h.root, acme.ID))
	if got := h.audit.actions[before:]; !slices.Equal(got, []string{"role_unassigned", "client_deleted"}) {
		t.Errorf("audited: %v", got)
	}
	_, err = h.Client(ctx, h.root, acme.ID)
	want(t, err, "not_found")
}

func TestSummariesOfOnesOwn(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	acme, err := h.CreateClient(ctx, h.root, "acme")
	must(t, err)
	_, err = h.CreateClient(ctx, h.root, "zeta")
	must(t, err)
	prod, err := h.CreateEnvironment(ctx, h.root, acme.ID, "prod")
	must(t, err)
	_, err = h.CreateEnvironment(ctx, h.root, acme.ID, "test")
	must(t, err)
	inside := h.person(t, "inside", access.Scope{ClientID: acme.ID, EnvironmentID: prod.ID}, access.ClientsRead)
	clients, total, err := h.ClientSummaries(ctx, inside, tenancy.ClientQuery{Limit: 10})
	must(t, err)
	environments, err := h.EnvironmentSummaries(ctx, inside, acme.ID)
	must(t, err)
	if total != 1 || clients[0].ID != acme.ID || clients[0].Environments != 1 || len(environments) != 1 || environments[0].ID != prod.ID {
		t.Errorf("%v of %d, %v", clients, total, environments)
	}
	_, _, err = h.ClientSummaries(ctx, access.Principal{UserID: "nobody"}, tenancy.ClientQuery{Limit: 10})
	want(t, err, "permission_missing")
}
