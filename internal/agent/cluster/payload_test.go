package cluster

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"prxm.uz/proxima/internal/wire"
	"prxm.uz/proxima/test/harness"
)

// An inventory above the server's limit is refused before it is sent, counted, and told to console with its
// size, the limit and both cures (B-96, B-115).
func TestAnInventoryAboveTheLimitOfTheServer(t *testing.T) {
	const most = 768 // an inventory of a cluster that has not made its namespaces yet is above what that leaves
	plane := harness.New(t).LightControlPlane()
	c := startConsole(t, func(o *server.Options) { o.MaxPayload = most })
	cfg := configure(t, c, plane.Kubeconfig(), "")
	cfg.PodLimit = 4321
	r := start(t, cfg)

	var told string
	c.await("a failed sync", time.Minute, func() bool {
		beat, _ := last[wire.Heartbeat](c, "heartbeat.agtprod")
		if beat.LastSync != nil {
			told = beat.LastSync.Error
		}
		return told != ""
	})
	found := regexp.MustCompile(`^inventory is too large for one NATS message: it has (\d+) bytes, (\d+) are allowed: lower PROXIMA_K8S_POD_LIMIT \(now 4321\), or raise max_payload on the NATS server$`).FindStringSubmatch(told)
	if found == nil {
		t.Fatalf("told: %q", told)
	}
	size, limit := must(strconv.Atoi(found[1])), must(strconv.Atoi(found[2]))
	if limit != most-headerRoom || size <= limit {
		t.Errorf("told: %q", told)
	}
	_, text := get(t, cfg.MetricsAddr, "/metrics")
	for _, line := range []string{
		`proxima_collector_inventory_too_large_total{outcome="rejected"} `, "proxima_collector_sync_errors_total ", fmt.Sprintf("proxima_collector_inventory_payload_bytes %d", size),
	} {
		if !strings.Contains(text, line) || strings.Contains(text, line+"0\n") {
			t.Errorf("metrics lack %s", line)
		}
	}
	if !strings.Contains(r.log.String(), ErrPayloadTooLarge.Error()) {
		t.Error("the log does not say so")
	}
	c.locked(func() {
		if n := len(c.messages["inventory.agtprod"]); n != 0 {
			t.Errorf("%d inventories were published", n)
		}
	})
}
