package inventory_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"prxm.uz/proxima/internal/wire"
)

// FuzzReceive: what a collector may send is stored, dropped or malformed on either database. An error of the
// store's would be delivered again for ever.
func FuzzReceive(f *testing.F) {
	const head = `{"capability":1,"epoch":1,"sync":1,"clusterSlug":"alpha","clusterUid":"u","collectedAt":"2026-03-01T12:00:00Z"`
	for _, seed := range []string{
		head + `,"cluster":{"version":"v1.36.1"},"pods":[{"namespace":"shop","name":"web-0"},{"namespace":"shop","name":"web-0"}],"kinds":[{"kind":"pods","kept":2,"total":2}]}`,
		head + `,"nodes":[{"name":"\u0000"},{"name":"\ud800"},{"name":""}],"kinds":[{"kind":"nodes","kept":3,"total":-1}]}`,
		head + `,"events":[{"namespace":"x","name":"y","count":-9223372036854775808,"lastSeen":"0000-01-01T00:00:00Z"}]}`,
		head + `,"workloads":[{"kind":"Deployment","name":"a","desired":9223372036854775807}],"services":[{"name":"` + strings.Repeat("é", 300) + `"}]}`,
		`{"capability":0}`, head + `,"clusterSlug":"\u0000"}`, head + `,"clusterUid":"` + strings.Repeat("u", 500) + `"}`, head + `,"epoch":-1,"sync":-1}`,
	} {
		f.Add([]byte(seed))
	}
	desks := []*desk{newDesk(f, engines.SQLite(f)), newDesk(f, engines.Postgres(f))}
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	must(f, err)
	f.Fuzz(func(t *testing.T, text []byte) {
		data := pack.EncodeAll(text, nil)
		for _, d := range desks {
			d.clock.Advance(time.Minute)
			if err := d.deliver(t.Context(), "a", data); err != nil && !errors.Is(err, wire.ErrMalformed) {
				t.Errorf("neither stored nor malformed: %v", err)
			}
		}
	})
}
