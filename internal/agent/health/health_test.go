package health_test

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"prxm.uz/proxima/internal/agent/health"
)

// A request that does not end has five seconds (B-91): so long, and no longer, a stop waits for it.
func TestAStopWaitsFiveSeconds(t *testing.T) {
	t.Parallel()
	asked, until := make(chan struct{}), make(chan struct{})
	s, err := health.Start(t.Context(), "127.0.0.1:0", prometheus.NewRegistry(), func() (bool, string) {
		close(asked)
		<-until
		return true, ""
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+"/readyz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan bool, 1)
	go func() {
		resp, err := (&http.Client{Timeout: 20 * time.Second}).Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		answered <- err == nil
	}()
	<-asked
	began := time.Now()
	if err := s.Stop(t.Context()); err == nil {
		t.Error("a request that was cut off was not reported")
	}
	if took := time.Since(began); took < 5*time.Second || took > 9*time.Second {
		t.Errorf("waited %v", took)
	}
	if <-answered {
		t.Error("the request in flight was answered")
	}
	close(until)
}
