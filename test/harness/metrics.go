package harness

import (
	"fmt"
	"strconv"
	"strings"
)

// parseMetrics reads what a /metrics endpoint answers: each sample by its name and labels.
func parseMetrics(text string) (_ map[string]float64, err error) {
	metrics := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		cut := strings.LastIndexByte(line, ' ')
		if cut < 0 || line[0] == '#' {
			continue
		}
		if metrics[line[:cut]], err = strconv.ParseFloat(line[cut+1:], 64); err != nil {
			return nil, fmt.Errorf("metric %s: %w", line, err)
		}
	}
	return metrics, nil
}
