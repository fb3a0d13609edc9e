//go:build unix && !linux

package harness

import "syscall"

// childAttributes gives the child a process group of its own. Where the kernel
// has no parent-death signal, children stay when this process is killed.
func childAttributes(c Command) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: c.Credential}
}
