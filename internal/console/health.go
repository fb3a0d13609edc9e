package console

import (
	"fmt"
	"path/filepath"
	"syscall"

	"prxm.uz/proxima/internal/console/health"
	"prxm.uz/proxima/internal/console/health/part"
)

// assembleHealth makes the service that measures what console stands on.
func (s *console) assembleHealth() {
	c := health.Config{
		Database: s.db, NATS: s.ingest, Embedded: s.embedded != nil, SyncInterval: s.cfg.SyncInterval,
		Settings: s.settings, Clock: s.clock, Logger: s.log,
	}
	if s.cfg.embeds() {
		c.Disk = func() (part.Disk, error) { return measureDisk(s.cfg.DataDir) }
	}
	if s.certificate != nil {
		leaf := s.certificate.Certificates[0].Leaf
		c.Certificate = &part.Certificate{Names: leaf.DNSNames, NotBefore: leaf.NotBefore, NotEnd: leaf.NotAfter}
		for _, ip := range leaf.IPAddresses {
			c.Certificate.Names = append(c.Certificate.Names, ip.String())
		}
	}
	s.health = health.New(c)
}

// measureDisk asks for the file system of a directory. It may hang where that is a network's.
func measureDisk(dir string) (part.Disk, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return part.Disk{}, fmt.Errorf("measure the file system of %s: %w", dir, err)
	}
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	block := int64(stat.Bsize) //nolint:unconvert // it is narrower on other systems
	return part.Disk{Directory: dir, Free: int64(stat.Bavail) * block, Total: int64(stat.Blocks) * block}, nil
}
