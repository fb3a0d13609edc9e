package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/agent/enroll"
	"prxm.uz/proxima/internal/wire"
	"prxm.uz/proxima/test/harness"
)

// rogue holds the credential of a collector that enrolled as it should, and sends what it likes.
type rogue struct {
	t    *testing.T
	id   string
	slug string
	nc   *nats.Conn
}

func newRogue(t *testing.T, c *harness.Console, recorded console.OnboardingRecorded) *rogue {
	t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	client, err := enroll.New(c.URL, *recorded.InstallToken, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.Enroll(t.Context(), enroll.Request{AgentType: "collector", Name: "rogue", ClusterSlug: recorded.Onboarding.Slug, Version: "0.9.0"}, key)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(strings.Join(got.NatsURLs, ","),
		nats.UserJWT(func() (string, error) { return got.Credential.Jwt, nil }, key.Sign),
		nats.CustomInboxPrefix(wire.InboxPrefix(got.AgentID)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return &rogue{t: t, id: got.AgentID, slug: recorded.Onboarding.Slug, nc: nc}
}

// publish sends an inventory in JSON and returns once the stream has it.
func (r *rogue) publish(text string) {
	r.t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	stored, err := r.nc.SubscribeSync(wire.StoredSubject(r.id))
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = stored.Unsubscribe() }()
	if err := r.nc.Publish(wire.InventorySubject(r.id), w.EncodeAll([]byte(text), nil)); err != nil {
		r.t.Fatal(err)
	}
	if _, err := stored.NextMsg(20 * time.Second); err != nil {
		r.t.Fatalf("the stream does not have it: %v", err)
	}
}

// head begins an inventory of the rogue's own cluster.
func (r *rogue) head(epoch, sync int64) string {
	return fmt.Sprintf(`{"capability":1,"epoch":%d,"sync":%d,"clusterSlug":%q,"clusterUid":"uid-%s","collectedAt":%q`, epoch, sync, r.slug, r.slug, time.Now().UTC().Format(time.RFC3339))
}

// cluster reads the rogue's cluster as console stored it.
func (r *rogue) cluster(ctx context.Context, c *harness.Console) (console.Cluster, error) {
	var list console.ClusterList
	if _, err := c.Do(ctx, http.MethodGet, "/api/v1/clusters", nil, &list); err != nil {
		return console.Cluster{}, err
	}
	for _, found := range list.Items {
		if found.Slug == r.slug {
			return found, nil
		}
	}
	return console.Cluster{}, errors.New("no such cluster: " + r.slug)
}

// TestRogueInventories: one who holds the credential of one cluster can spoil the picture of that cluster,
// and nothing else. What it sends costs the console bounded memory, and no other waits for it.
func TestRogueInventories(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	c := h.Console(harness.ConsoleOptions{Env: settings()})
	place, first := startAttempt(t, c, "Halden Energy", "Rogue")
	r, neighbour := newRogue(t, c, first), newRogue(t, c, record(t, c, place, "Neighbour"))
	before, err := c.Process().PeakMemory()
	if err != nil {
		t.Fatal(err)
	}
	applied := func(r *rogue, sync int64) {
		t.Helper()
		version := fmt.Sprint("v1.36.", sync)
		r.publish(r.head(1, sync) + fmt.Sprintf(`,"cluster":{"version":%q},"pods":[{"namespace":"shop","name":"web-%d"}],"kinds":[{"kind":"pods","kept":1,"total":1}]}`, version, sync))
		if err := harness.Await(h.Context(), "the inventory", func(ctx context.Context) error {
			got, err := r.cluster(ctx, c)
			if err == nil && (got.Version == nil || *got.Version != version || got.Counts.Pods != 1) {
				err = fmt.Errorf("%+v", got)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	applied(r, 1)
	empty := strings.Repeat(",{}", 300_000)
	for name, text := range map[string]string{
		"an object of empty containers":  r.head(1, 2) + `,"pods":[{"name":"p","containers":[{}` + strings.Repeat(empty, 25) + `]}]}`,
		"objects of empty containers":    r.head(1, 2) + `,"pods":[{"name":"p"}` + strings.Repeat(`,{"name":"p","containers":[{}`+empty+`]}`, 90) + `]}`,
		"objects of empty conditions":    r.head(1, 2) + `,"nodes":[{"name":"n"}` + strings.Repeat(`,{"name":"n","conditions":[{}`+empty+`]}`, 90) + `]}`,
		"deep nesting":                   r.head(1, 2) + `,"x":` + strings.Repeat("[", 5_000_000),
		"a text that never ends":         r.head(1, 2) + `,"clusterName":"` + strings.Repeat("a", wire.MaxInventory),
		"an epoch that leaves none over": r.head(wire.MaxOrder, wire.MaxOrder) + "}",
	} {
		r.publish(text)
		// What is next in the stream shows that console came past it.
		applied(neighbour, time.Now().UnixMicro())
		if t.Failed() {
			t.Fatal(name)
		}
	}
	after, err := c.Process().PeakMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("peak memory of the console: %d MiB, %d MiB before", after>>20, before>>20)
	if after > before+600<<20 {
		t.Errorf("hostile inventories took %d MiB of memory, %d MiB before", after>>20, before>>20)
	}
	if got, err := r.cluster(t.Context(), c); err != nil || got.Dropped != 1 {
		t.Errorf("the rogue's cluster: %+v, %v", got, err)
	}
	applied(r, 3)
}
