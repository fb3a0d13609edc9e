package console

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// inventoryMetrics counts what becomes of inventories; it implements inventory.Observer.
type inventoryMetrics struct {
	rows    prometheus.Counter
	seconds prometheus.Histogram
	dropped *prometheus.CounterVec
}

func newInventoryMetrics(r prometheus.Registerer) (*inventoryMetrics, error) {
	m := &inventoryMetrics{
		rows: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "proxima_console", Subsystem: "inventory", Name: "rows_written_total", Help: "Rows written or deleted by inventories.",
		}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "proxima_console", Subsystem: "inventory", Name: "apply_seconds", Help: "Time to decode, compare and store one inventory.",
			Buckets: prometheus.ExponentialBuckets(0.002, 3, 10),
		}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "proxima_console", Subsystem: "inventory", Name: "dropped_total", Help: "Inventories that were not applied, by reason.",
		}, []string{"reason"}),
	}
	return m, errors.Join(r.Register(m.rows), r.Register(m.seconds), r.Register(m.dropped))
}

// InventoryApplied implements inventory.Observer.
func (m *inventoryMetrics) InventoryApplied(rows int, took time.Duration) {
	m.rows.Add(float64(rows))
	m.seconds.Observe(took.Seconds())
}

// InventoryDropped implements inventory.Observer.
func (m *inventoryMetrics) InventoryDropped(reason string) { m.dropped.WithLabelValues(reason).Inc() }
