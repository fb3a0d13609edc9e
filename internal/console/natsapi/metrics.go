package natsapi

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count what crosses this edge, by kind of message.
type metrics struct {
	received, dropped, malformed, failed *prometheus.CounterVec
	seconds                              *prometheus.HistogramVec
	lag                                  prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "proxima_console", Subsystem: "ingest", Name: name, Help: help}, []string{"kind"})
	}
	m := &metrics{
		received:  counter("received_total", "Messages from agents."),
		dropped:   counter("dropped_total", "Messages without an agent's id, without room in the batch, or beyond the rate of their agent."),
		malformed: counter("malformed_total", "Messages that break their form or a limit."),
		failed:    counter("failed_total", "Domain calls that failed; what matters is tried again."),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "proxima_console", Subsystem: "ingest", Name: "seconds", Help: "Time of one domain call.",
			Buckets: prometheus.ExponentialBuckets(0.001, 3, 11),
		}, []string{"kind"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "proxima_console", Subsystem: "ingest", Name: "lag_seconds", Help: "From an inventory's arrival in NATS until it is stored, or dropped.",
			Buckets: prometheus.ExponentialBuckets(0.005, 1.6, 26),
		}),
	}
	return m, errors.Join(r.Register(m.received), r.Register(m.dropped), r.Register(m.malformed), r.Register(m.failed), r.Register(m.seconds), r.Register(m.lag))
}
