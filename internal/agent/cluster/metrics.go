package cluster

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are what /metrics shows (B-98, B-104 to B-107).
type metrics struct {
	syncs, syncErrors  prometheus.Counter
	duration, payload  prometheus.Gauge
	leader             prometheus.Gauge
	collected          *prometheus.GaugeVec
	tooLarge, commands *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		syncs:      prometheus.NewCounter(prometheus.CounterOpts{Name: "proxima_collector_syncs_total", Help: "Syncs that were begun."}),
		syncErrors: prometheus.NewCounter(prometheus.CounterOpts{Name: "proxima_collector_sync_errors_total", Help: "Syncs that published nothing."}),
		duration:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "proxima_collector_last_sync_duration_seconds", Help: "How long the last sync took."}),
		payload:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "proxima_collector_inventory_payload_bytes", Help: "Compressed size of the last inventory."}),
		leader:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "proxima_collector_leader", Help: "1 while this replica leads."}),
		collected:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "proxima_collector_resources_collected", Help: "Objects in the last inventory, by kind."}, []string{"resource"}),
		tooLarge:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "proxima_collector_inventory_too_large_total", Help: "Inventories above the server's limit, by what became of them."}, []string{"outcome"}),
		commands:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "proxima_collector_commands_total", Help: "Commands of console, by name and result."}, []string{"command", "result"}),
	}
	var errs []error
	for _, c := range []prometheus.Collector{
		m.syncs, m.syncErrors, m.duration, m.payload, m.leader, m.collected, m.tooLarge, m.commands,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		errs = append(errs, registry.Register(c))
	}
	return m, errors.Join(errs...)
}
