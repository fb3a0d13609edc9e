package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
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
	key  nkeys.KeyPair
	api  *enroll.Client
	// connect opens one more connection.
	connect func() (*nats.Conn, error)
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
	r := &rogue{t: t, id: got.AgentID, slug: recorded.Onboarding.Slug, key: key, api: client}
	r.connect = func() (*nats.Conn, error) {
		return nats.Connect(strings.Join(got.NatsURLs, ","),
			nats.UserJWT(func() (string, error) { return got.Credential.Jwt, nil }, key.Sign),
			nats.CustomInboxPrefix(wire.InboxPrefix(got.AgentID)))
	}
	if r.nc, err = r.connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.nc.Close)
	return r
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

// applied publishes a small inventory and returns, once console has applied it, how long that took.
func (r *rogue) applied(ctx context.Context, c *harness.Console, sync int64) time.Duration {
	r.t.Helper()
	begun, version := time.Now(), fmt.Sprint("v1.36.", sync)
	r.publish(r.head(1, sync) + fmt.Sprintf(`,"cluster":{"version":%q},"pods":[{"namespace":"shop","name":"web-%d"}],"kinds":[{"kind":"pods","kept":1,"total":1}]}`, version, sync))
	if err := harness.Await(ctx, "the inventory", func(ctx context.Context) error {
		got, err := r.cluster(ctx, c)
		if err == nil && (got.Version == nil || *got.Version != version || got.Counts == nil || got.Counts.Pods != 1) {
			err = fmt.Errorf("%+v", got)
		}
		return err
	}); err != nil {
		r.t.Fatal(err)
	}
	return time.Since(begun)
}

// memoryOf notes the peak of a console's memory; the answer holds the peak that is then to one that is by most
// bytes higher.
func memoryOf(t *testing.T, c *harness.Console) (bound func(most int64, what string)) {
	t.Helper()
	peak := func() int64 {
		t.Helper()
		bytes, err := c.Process().PeakMemory()
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	before := peak()
	return func(most int64, what string) {
		t.Helper()
		after := peak()
		t.Logf("peak memory of the console: %d MiB, %d MiB before", after>>20, before>>20)
		if after > before+most {
			t.Errorf("%s took %d MiB of memory, %d MiB before", what, after>>20, before>>20)
		}
	}
}

// TestRogueFlood: one that sends inventories as fast as it can is kept out at once and told until when; the
// others go on as if nothing were.
func TestRogueFlood(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	c := h.Console(harness.ConsoleOptions{Env: settings()})
	place, first := startAttempt(t, c, "Halden Energy", "Flood")
	r, neighbour := newRogue(t, c, first), newRogue(t, c, record(t, c, place, "Beside"))
	neighbour.applied(h.Context(), c, 1)
	boundMemory := memoryOf(t, c)
	var group sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		nc, err := r.connect()
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			defer nc.Close()
			for {
				select {
				case <-stop:
					return
				default:
				}
				for range 100 {
					_ = nc.Publish(wire.InventorySubject(r.id), []byte("flood")) // refused once it is kept out
				}
				_ = nc.FlushTimeout(time.Second)
			}
		})
	}
	if err := harness.Await(h.Context(), "the suspension", func(ctx context.Context) error {
		_, err := r.api.Renew(ctx, r.id, "0.9.0", r.key)
		told, ok := enroll.AsRefusal(err)
		if !ok || told.Code != "agent_suspended" || told.RetryAfter < time.Minute || told.Cure == "" {
			return fmt.Errorf("renewed: %w", err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for sync := range int64(5) {
		if took := neighbour.applied(h.Context(), c, 2+sync); took > 10*time.Second {
			t.Errorf("the neighbour's inventory took %v", took)
		}
	}
	close(stop)
	group.Wait()
	boundMemory(150<<20, "the flood")
	if _, err := r.connect(); err == nil {
		t.Error("its credential is still taken")
	}
}

// TestRogueLargeInventory: a few kilobytes that stand for a great many objects, which all change, are stored
// while others write as ever.
func TestRogueLargeInventory(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	c := h.Console(harness.ConsoleOptions{Env: settings()})
	place, first := startAttempt(t, c, "Halden Energy", "Large")
	r, neighbour := newRogue(t, c, first), newRogue(t, c, record(t, c, place, "Small"))
	large := func(sync int64, name string) string {
		text := r.head(1, sync) + fmt.Sprintf(`,"cluster":{"version":"v1.36.%d"},"kinds":[{"kind":"pods","kept":1,"total":1}],"pods":[{"name":"p"}`, sync)
		var objects strings.Builder
		for i := range 60_000 {
			fmt.Fprintf(&objects, `,{"namespace":"shop","name":"%s-%d"}`, name, i)
		}
		return text + objects.String() + "]}"
	}
	stored := func(sync int64) bool {
		got, err := r.cluster(t.Context(), c)
		return err == nil && got.Version != nil && *got.Version == fmt.Sprint("v1.36.", sync)
	}
	for sync, name := range []string{"a", "b"} {
		begun, longest, beside := time.Now(), time.Duration(0), 0
		r.publish(large(int64(sync+1), name))
		for n := int64(1); !stored(int64(sync + 1)); n++ {
			longest = max(longest, neighbour.applied(h.Context(), c, int64(sync)*1000+n))
			beside++
		}
		whole := time.Since(begun)
		t.Logf("the large inventory took %v, the longest of %d beside it %v", whole, beside, longest)
		if beside < 3 || longest > whole/3 {
			t.Errorf("beside a large inventory of %v %d of the neighbour were stored, the longest within %v", whole, beside, longest)
		}
	}
}

// TestRogueInventories: one who holds the credential of one cluster can spoil the picture of that cluster,
// and nothing else. What it sends costs the console bounded memory, and no other waits for it.
func TestRogueInventories(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	c := h.Console(harness.ConsoleOptions{Env: settings()})
	place, first := startAttempt(t, c, "Halden Energy", "Rogue")
	r, neighbour := newRogue(t, c, first), newRogue(t, c, record(t, c, place, "Neighbour"))
	boundMemory := memoryOf(t, c)
	applied := func(r *rogue, sync int64) { t.Helper(); r.applied(h.Context(), c, sync) }
	applied(r, 1)
	token, err := c.APIToken(h.Context())
	if err != nil {
		t.Fatal(err)
	}
	settled := 0 // hostile messages that console refused or dropped
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
		applied(neighbour, time.Now().UnixMicro())
		settled++
		if err := harness.Await(h.Context(), name, func(ctx context.Context) error {
			got, err := r.cluster(ctx, c)
			if err != nil {
				return err
			}
			_, metrics := get(t, c.URL+"/metrics", token)
			_, value, _ := strings.Cut(metrics, "proxima_console_ingest_malformed_total{kind=\"inventory\"} ")
			value, _, _ = strings.Cut(value, "\n")
			if refused, _ := strconv.Atoi(value); refused+int(got.Dropped) != settled { // no such line means none
				return fmt.Errorf("%q refused and %d dropped of %d", value, got.Dropped, settled)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	boundMemory(600<<20, "hostile inventories")
	if got, err := r.cluster(t.Context(), c); err != nil || got.Dropped != 1 {
		t.Errorf("the rogue's cluster: %+v, %v", got, err)
	}
	applied(r, 3)
}
