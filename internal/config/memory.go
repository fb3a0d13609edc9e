package config

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// LimitMemory sets the garbage collector's percentage, unless GOGC says otherwise, and Go's soft memory
// limit to 90 % of the container's, unless GOMEMLIMIT set one. root is the directory of the cgroup file
// system. It returns the limit in bytes, 0 where none was found.
func LimitMemory(root string, gcPercent int) int64 {
	if before := debug.SetGCPercent(gcPercent); before != 100 {
		debug.SetGCPercent(before)
	}
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return 0
	}
	for _, name := range []string{"memory.max", "memory/memory.limit_in_bytes"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue
		}
		bytes, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
		if err != nil || bytes <= 0 || bytes > 1<<46 { // "max", and what version 1 says instead
			continue
		}
		bytes = bytes / 10 * 9
		debug.SetMemoryLimit(bytes)
		return bytes
	}
	return 0
}
